#include "campaign/slurm_engine.hpp"

#include "core/command.hpp"
#include "core/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

namespace hebe::campaign {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAskedFor = "check `sinfo` and the options, then submit again";
// SIGTERM so long before the time limit: a window ends, the worker leaves, the record stays
// unsealed or is sealed.
constexpr int kSecondsToStop = 120;

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

std::unexpected<Refusal> slurm_failed(const std::string& what, const std::string& next,
                                      const std::string& where) {
  return refuse(RefusalCode::slurm_failed, what, next, where);
}

/// Runs one of Slurm's commands; anything but success is slurm_failed with its words.
Result<std::string> slurm(const std::vector<std::string>& argv) {
  auto done = run_command(argv);
  if (!done && done.error().code == RefusalCode::not_found)
    return slurm_failed(argv.front() + " is not on PATH: this machine has no Slurm",
                        "submit from a machine of the cluster, or use the local engine",
                        argv.front());
  if (!done) return slurm_failed(done.error().what, kAskedFor, argv.front());
  if (done->exit != 0) {
    auto words = trimmed(done->err.empty() ? done->out : done->err);
    return slurm_failed(fmt::format("{} ended with code {}: {}", argv.front(), done->exit,
                                    words.empty() ? "it said nothing" : words),
                        kAskedFor, argv.front());
  }
  return std::move(done->out);
}

Result<std::size_t> max_array_size() {
  HEBE_TRY(const auto text, slurm({"scontrol", "show", "config"}));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("MaxArraySize")) continue;
    const auto digits = line.find_first_of("0123456789");
    std::size_t size = 0;
    if (digits != std::string::npos &&
        std::from_chars(line.data() + digits, line.data() + line.size(), size).ec == std::errc{} &&
        size > 1)
      return size; // the largest index is one less, and ours begin at 0
  }
  return slurm_failed("scontrol does not name a MaxArraySize above 1",
                      "ask the cluster's administrator: job arrays are switched off", "scontrol");
}

// Slurm reads "%" in --output, and a script's comment ends with its line.
Status check(const SlurmRequest& r) {
  std::vector<std::pair<const char*, std::string>> words = {{"program", r.program.string()},
                                                            {"data root", r.data_root.string()},
                                                            {"folder", r.folder.string()},
                                                            {"campaign", r.campaign},
                                                            {"device", r.device},
                                                            {"partition", r.options.partition},
                                                            {"account", r.options.account},
                                                            {"gres", r.options.gres},
                                                            {"time limit", r.options.time_limit}};
  for (const auto& word : r.options.extra) words.emplace_back("option of sbatch", word);
  for (const auto& [name, value] : r.environment) {
    words.emplace_back("environment", name);
    words.emplace_back("environment", value);
    const bool plain = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return c == '_' || (c < 128 && std::isalnum(c) != 0);
                       });
    if (!plain)
      return refuse(RefusalCode::bad_argument,
                    "\"" + name + "\" cannot be an environment variable");
  }
  for (const auto& [what, word] : words)
    if (std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 32; }))
      return refuse(RefusalCode::bad_argument,
                    fmt::format("the {} {:?} has a control character", what, word));
  if (r.folder.string().find('\\') != std::string::npos)
    return refuse(RefusalCode::bad_argument,
                  "Slurm cannot write logs below a folder with a backslash",
                  "choose another --data-root", r.folder.string());
  for (const auto& path : {r.program, r.data_root, r.folder})
    if (!path.is_absolute())
      return refuse(RefusalCode::bad_argument,
                    path.string() + " is not absolute: a task starts elsewhere");
  if (r.jobs.empty()) return refuse(RefusalCode::bad_argument, "there is no pending job to submit");
  if (std::set<std::size_t>(r.jobs.begin(), r.jobs.end()).size() != r.jobs.size())
    return refuse(RefusalCode::bad_argument, "a job is named twice: two tasks would run it");
  if (r.options.max_parallel < 0)
    return refuse(RefusalCode::bad_argument, "at most a negative number of tasks at a time");
  return {};
}

/// Scripts of earlier submissions stay: Slurm may still start tasks of theirs.
std::string free_name(const fs::path& folder) {
  for (int i = 1;; ++i) {
    auto name = fmt::format("{:04}", i);
    std::error_code ec;
    if (!fs::exists(folder / (name + ".sh"), ec) && !fs::exists(folder / (name + ".jobs"), ec))
      return name;
  }
}

std::string log_pattern(const SlurmRequest& r, const std::string& name) {
  std::string folder;
  for (const char c : r.folder.string()) folder += c == '%' ? std::string("%%") : std::string(1, c);
  return folder + "/" + name + (r.one_task ? "-%j.log" : "-%A_%a.log");
}

/// All options stand on sbatch's command line: there they arrive unparsed and win over the SBATCH_*
/// variables of whoever submits, which beat a script's own #SBATCH lines.
std::vector<std::string> sbatch_options(const SlurmRequest& r, const std::string& name,
                                        std::size_t tasks, const std::string& after) {
  const auto& o = r.options;
  std::vector<std::string> out = {
      "--parsable", "--job-name=hebe-" + r.campaign,
      "--requeue", // a lost node costs a start, not the job; never --no-kill, which would keep it
      "--open-mode=append", // a second start does not wipe the first one's words
      "--output=" + log_pattern(r, name), "--chdir=" + r.data_root.string(), "--nodes=1",
      "--ntasks=1",
      "--exclusive", // neighbours on the node heat the board and load its CPU
      // To the script itself, which has become hebe by exec.
      fmt::format("--signal=B:TERM@{}", kSecondsToStop),
      // As a local run from the same shell. NONE, or a list of names, makes each node start a login
      // shell for the rest, which can hang or put the job on hold.
      "--export=ALL"};
  if (!o.gres.empty()) out.push_back("--gres=" + o.gres);
  if (!o.partition.empty()) out.push_back("--partition=" + o.partition);
  if (!o.account.empty()) out.push_back("--account=" + o.account);
  if (!o.time_limit.empty()) out.push_back("--time=" + o.time_limit);
  if (!r.one_task)
    out.push_back(fmt::format("--array=0-{}", tasks - 1) +
                  (o.max_parallel > 0 ? fmt::format("%{}", o.max_parallel) : ""));
  // The limit of parallel tasks is an array's own: arrays follow each other where it is to hold.
  if (!after.empty()) out.push_back("--dependency=afterany:" + after);
  out.insert(out.end(), o.extra.begin(), o.extra.end());
  return out;
}

std::string script_text(const SlurmRequest& r, const std::string& name,
                        const std::vector<std::string>& command) {
  std::string text = "#!/bin/bash\n# Written by hebe campaign-submit; submitted as:\n#  ";
  for (const auto& word : command) text += " " + quoted(word);
  text += "\nset -eu\n";
  for (const auto& [key, value] : r.environment)
    text += fmt::format("export {}={}\n", key, quoted(value));
  if (!r.one_task) {
    text += "# Line SLURM_ARRAY_TASK_ID, counted from 0, is this task's job.\n";
    text += fmt::format("mapfile -t -s \"$SLURM_ARRAY_TASK_ID\" -n 1 job <{}\n",
                        quoted((r.folder / (name + ".jobs")).string()));
  }
  text += fmt::format("exec {} --data-root {} campaign-work {}", quoted(r.program.string()),
                      quoted(r.data_root.string()), quoted(r.campaign));
  if (!r.one_task) text += " --task \"${job[0]}\"";
  return text + fmt::format(" --device {}\n", quoted(r.device));
}

/// Writes one script, submits it, and returns Slurm's id of it.
Result<std::string> submit_chunk(const SlurmRequest& r, const std::vector<std::size_t>& jobs,
                                 const std::string& after, fs::path& script) {
  const auto name = free_name(r.folder);
  script = r.folder / (name + ".sh");
  std::vector<std::string> command = {"sbatch"};
  for (auto& option : sbatch_options(r, name, jobs.size(), after))
    command.push_back(std::move(option));
  command.push_back(script.string());
  if (!r.one_task)
    HEBE_CHECK(
        write_file_whole(r.folder / (name + ".jobs"), fmt::format("{}\n", fmt::join(jobs, "\n"))));
  HEBE_CHECK(write_file_whole(script, script_text(r, name, command)));
  HEBE_TRY(const auto said, slurm(command));
  const auto id = said.substr(0, said.find_first_of(";\n")); // "ID" or "ID;CLUSTER"
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    return slurm_failed("sbatch answered \"" + trimmed(said) + "\" instead of a job id",
                        "look for it with squeue, and cancel it", script.string());
  return id;
}

/// After a failure: nothing of this submission stays queued.
Refusal taken_back(Refusal why, const SlurmSubmission& submitted) {
  if (submitted.job_ids.empty()) return why;
  std::vector<std::string> command = {"scancel"};
  command.insert(command.end(), submitted.job_ids.begin(), submitted.job_ids.end());
  const auto ids = fmt::format("{}", fmt::join(submitted.job_ids, " "));
  if (const auto cancelled = slurm(command); cancelled)
    why.what += "\nsubmitted before that and cancelled: " + ids;
  else
    why.next = "first cancel what was submitted before that: scancel " + ids;
  return why;
}

/// Several arrays or states as one word.
std::string joined_state(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& s) {
    if (s == "RUNNING") return 0;
    if (s == "COMPLETING" || s == "CONFIGURING" || s == "STAGE_OUT" || s == "SUSPENDED") return 1;
    if (s == "PENDING" || s.starts_with("REQUEUE") || s == "SPECIAL_EXIT") return 2;
    return s == "COMPLETED" ? 4 : 3;
  };
  return rank(b) < rank(a) ? b : a;
}

} // namespace

Result<std::vector<std::string>> living_slurm_jobs(const std::string& campaign) {
  static const std::set<std::string> kEnded = {
      "BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE", "FAILED",
      "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "REVOKED",  "TIMEOUT"};
  HEBE_TRY(const auto text, slurm({"squeue", "--noheader", "--states=all",
                                   "--name=hebe-" + campaign, "--format=%F %T"}));
  std::set<std::string> living;
  std::istringstream lines(text);
  for (std::string id, state; lines >> id >> state;)
    if (!kEnded.contains(state)) living.insert(id);
  return std::vector<std::string>(living.begin(), living.end());
}

Result<SlurmSubmission> submit_to_slurm(const SlurmRequest& request) {
  HEBE_CHECK(check(request));
  std::size_t chunk = request.jobs.size();
  if (!request.one_task) {
    HEBE_TRY(const auto most, max_array_size());
    chunk = std::min(chunk, most);
  }
  HEBE_CHECK(make_directories(request.folder));
  SlurmSubmission out;
  for (std::size_t begin = 0; begin < request.jobs.size(); begin += chunk) {
    const auto end = std::min(begin + chunk, request.jobs.size());
    const std::vector<std::size_t> jobs(request.jobs.begin() + static_cast<std::ptrdiff_t>(begin),
                                        request.jobs.begin() + static_cast<std::ptrdiff_t>(end));
    const bool in_turn = request.options.max_parallel > 0 && !out.job_ids.empty();
    fs::path script;
    auto id = submit_chunk(request, jobs, in_turn ? out.job_ids.back() : "", script);
    if (!id) return std::unexpected(taken_back(id.error(), out));
    out.job_ids.push_back(*std::move(id));
    out.scripts.push_back(std::move(script));
  }
  return out;
}

Result<std::map<std::string, std::string>> slurm_states(const std::vector<std::string>& job_ids) {
  std::map<std::string, std::string> out;
  for (const auto& id : job_ids) out[id] = "GONE";
  if (job_ids.empty()) return out;
  // All jobs: another user may resume, and squeue refuses the whole question when one id of a list
  // is gone.
  HEBE_TRY(const auto text, slurm({"squeue", "--noheader", "--states=all", "--format=%F %T"}));
  std::istringstream lines(text);
  for (std::string id, state; lines >> id >> state;)
    if (const auto hit = out.find(id); hit != out.end())
      hit->second = hit->second == "GONE" ? state : joined_state(hit->second, state);
  return out;
}

} // namespace hebe::campaign
