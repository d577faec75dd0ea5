#include "cli/context.hpp"

#include "core/build_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>

#include <unistd.h>

namespace hebe::cli {
namespace fs = std::filesystem;
namespace {
volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t asked_to_stop = 0; // by somebody, not by a connection that dropped

void on_interrupt(int number) {
  // A connection that drops may send SIGHUP twice, and SIGTERM may follow: nobody asked again.
  if (number != SIGHUP && asked_to_stop != 0) {
    ::signal(SIGINT, SIG_DFL); // the second Ctrl-C ends it at once
    ::raise(SIGINT);
  }
  if (number != SIGHUP) asked_to_stop = 1;
  if (stop_requested != 0) return;
  stop_requested = 1;
  constexpr char kText[] =
      "\ninterrupted: stopping; nothing unfinished will be recorded (again to end at once)\n";
  [[maybe_unused]] const auto put = ::write(2, kText, sizeof kText - 1);
}

std::string variable_or(const evidence::Variables& v, const char* name) {
  const auto hit = v.find(name);
  return hit == v.end() ? std::string() : hit->second;
}
} // namespace

void tell(const std::string& text) { std::fputs(text.c_str(), stderr); }

bool interrupted() { return stop_requested != 0; }

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr); // nohup stays nohup
}

fs::path Context::home() const {
  if (auto set = variable_or(variables, "HEBE_HOME"); !set.empty()) return set;
  std::error_code ec;
  const auto has_it = [&](const fs::path& p) {
    return fs::exists(p / "python/hebe/worker/__main__.py", ec);
  };
  for (auto folder = fs::read_symlink("/proc/self/exe", ec).parent_path();
       folder.has_relative_path(); folder = folder.parent_path())
    for (const auto& candidate : {folder, folder / "share/hebe"})
      if (has_it(candidate)) return candidate;
  if (const fs::path built = kSourceDir; !built.empty()) return built;
  return fs::read_symlink("/proc/self/exe", ec)
      .parent_path(); // portable: what is not there is told
}

fs::path Context::scratch() const {
  const auto set = variable_or(variables, "TMPDIR");
  return set.empty() ? fs::path("/tmp") : fs::path(set);
}

kernel::WorkerCommand Context::worker() const {
  std::error_code ec;
  std::string python = variable_or(variables, "HEBE_PYTHON");
  const auto venv = home() / ".venv/bin/python";
  if (python.empty())
    python = fs::exists(venv, ec) ? venv.string() : fs::exists(kPython, ec) ? kPython : "python3";
  auto path = (home() / "python").string();
  if (const auto before = variable_or(variables, "PYTHONPATH"); !before.empty())
    path += ":" + before;
  // Without the safe path, a numpy.py or triton.py where the user stands would take the real one's
  // place.
  return {{python, "-m", "hebe.worker"}, {{"PYTHONPATH", path}, {"PYTHONSAFEPATH", "1"}}};
}

Result<campaign::MachineRequest> Context::machine(std::uint64_t seed) const {
  campaign::MachineRequest m;
  m.selector = device;
  m.seed = seed;
  for (const auto& text : faults) {
    HEBE_TRY(const auto fault, gpu::fault_from(text));
    m.faults.push_back(fault);
  }
  return m;
}

void stands_alone(CLI::App& app, CLI::Option* mode, const std::vector<std::string>& beside) {
  for (auto* option : app.get_options())
    if (option != mode && option != app.get_help_ptr() &&
        std::ranges::find(beside, option->get_name()) == beside.end())
      mode->excludes(option);
}

std::vector<std::string> Context::recorded_argv() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i] == "--data-root") {
      ++i;
    } else if (!argv[i].starts_with("--data-root=")) {
      // The program's and the case's folders say where a user keeps their files, not what was run.
      const bool is_case = i > 0 && argv[i - 1] == "--case";
      out.push_back(i == 0 || is_case ? fs::path(argv[i]).filename().string() : argv[i]);
    }
  }
  return out;
}

void Context::print(const std::string& text) const { std::puts(text.c_str()); }
void Context::print_json(const Json& value) const {
  // For display: a file name that is not UTF-8 is shown with replacement characters, not refused.
  std::puts(value.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void add_seed(CLI::App& app, std::optional<std::uint64_t>& seed, const std::string& help) {
  app.add_option_function<std::string>(
         "--seed",
         [&seed](const std::string& text) {
           std::uint64_t value = 0;
           const char* end = text.data() + text.size();
           const auto read = std::from_chars(text.data(), end, value);
           if (read.ec != std::errc() || read.ptr != end)
             throw CLI::ValidationError("--seed",
                                        "\"" + text + "\" is no whole number from 0 to 2^64 - 1");
           seed = value;
         },
         help)
      ->type_name("UINT");
}

CLI::Validator whole_number_from(std::int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= least) return {};
    return fmt::format("\"{}\" is {}; give a whole number of {} or more", text,
                       read.ec == std::errc::result_out_of_range ? "beyond 2^63 - 1" : "not one",
                       least);
  };
  return {check, fmt::format(">={}", least), ""};
}

Json refusal_json(const Refusal& r) {
  return {{"code", name_of(r.code)},
          {"what", r.what},
          {"where", r.where},
          {"next", r.next},
          {"not_written", r.not_written},
          {"exit", static_cast<int>(exit_code_of(r.code))}};
}

int Context::refused(const Refusal& r) const {
  const auto code = static_cast<int>(exit_code_of(r.code));
  if (json) print_json({{"refused", refusal_json(r)}});
  tell("hebe: " + to_text(r) + "\n");
  return code;
}

} // namespace hebe::cli
