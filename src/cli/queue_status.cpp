// hebe queue-status: leases, campaigns, and what is running now.
#include "campaign/queue_status.hpp"
#include "campaign/board_lease.hpp"
#include "cli/context.hpp"

#include <fmt/format.h>

#include <thread>

#include <unistd.h>

namespace hebe::cli {
namespace {

struct QueueStatusOptions {
  std::string campaign;
  bool watch = false;
  double interval_s = 2;
};

std::string text_of(const Json& holder, const char* name) {
  if (!holder.is_object() || !holder.contains(name)) return "?";
  const auto& value = holder.at(name);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json json_of_queue_status(const campaign::QueueView& q) {
  Json leases = Json::array(), campaigns = Json::array(), half = Json::array(),
       captured = Json::array();
  for (const auto& l : q.leases)
    leases.push_back({{"board", l.uuid}, {"held", l.held}, {"holder", l.holder}});
  for (const auto& v : q.campaigns)
    campaigns.push_back(
        {{"id", v.id},
         {"problem", v.problem.empty() ? Json(nullptr) : Json(v.problem)},
         {"session", v.study ? "study" : "free"},
         {"jobs", v.jobs},
         {"sealed", v.sealed},
         {"waiting", v.waiting},
         {"refused", v.refused},
         {"running", v.running},
         {"died", v.died},
         {"last_refusal", v.last_refusal},
         {"submitting", v.submitting},
         {"engine", v.engine},
         {"slurm_jobs", v.slurm_jobs},
         {"analysis", v.analysis.empty() ? Json(nullptr) : Json(v.analysis)},
         {"last_event", v.last_us == 0 ? Json(nullptr) : Json(campaign::utc_text(v.last_us))}});
  for (const auto& p : q.half_written) half.push_back(p.string());
  for (const auto& p : q.captured) captured.push_back(p.string());
  return {
      {"leases", leases}, {"campaigns", campaigns}, {"half_written", half}, {"captured", captured}};
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 4 ? out + fmt::format(" and {} more", names.size() - 4) : out;
}

std::string text_of(const campaign::QueueView& q) {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  for (const auto& l : q.leases)
    line(l.held ? fmt::format("lease     {}  process {} on {} since {}: {}", l.uuid,
                              text_of(l.holder, "pid"), text_of(l.holder, "host"),
                              text_of(l.holder, "since"), text_of(l.holder, "what"))
                : fmt::format("free      {}  (last: {})", l.uuid, text_of(l.holder, "what")));
  for (const auto& v : q.campaigns) {
    if (!v.problem.empty()) {
      line(fmt::format("campaign  {}  UNREADABLE: {}", v.id, v.problem));
      continue;
    }
    line(fmt::format("campaign  {}  {}/{} sealed, {} running, {} waiting, {} refused{}{}", v.id,
                     v.sealed, v.jobs, v.running.size(), v.waiting, v.refused,
                     v.engine.empty() ? ", not submitted" : ", engine " + v.engine,
                     v.last_us == 0 ? "" : ", last event " + campaign::utc_text(v.last_us)));
    if (!v.running.empty()) line("          running: " + joined(v.running));
    if (!v.died.empty())
      line("          begun by processes that died (hebe resume " + v.id + "): " + joined(v.died));
    if (!v.last_refusal.empty()) line("          refused: " + v.last_refusal);
    if (!v.slurm_jobs.empty() && v.sealed < v.jobs)
      line("          Slurm: " + joined(v.slurm_jobs));
    if (!v.analysis.empty()) line("          analysis: " + v.analysis);
  }
  for (const auto& p : q.captured)
    line("captured  " + p.string() + "  finished, not sealed yet (hebe ingest)");
  for (const auto& p : q.half_written)
    line("half      " + p.string() + "  half written, never read, may be deleted");
  if (out.empty()) line("nothing is leased, queued or left over");
  return out;
}

bool over(const campaign::QueueView& q) {
  for (const auto& v : q.campaigns)
    if (v.problem.empty() && v.sealed < v.jobs) return false;
  return true;
}

int run_queue_status(const Context& c, const QueueStatusOptions& o) {
  const evidence::DataRoot root(c.data_root);
  if (o.watch) watch_for_interrupt();
  for (;;) {
    const auto queue = campaign::look_at_queue(root, o.campaign);
    if (!queue) return c.refused(queue.error());
    if (o.watch && !c.json && ::isatty(1) == 1) std::fputs("\x1b[H\x1b[J", stdout);
    if (c.json && o.watch) // a line each time
      c.print(json_of_queue_status(*queue).dump(-1, ' ', false, Json::error_handler_t::replace));
    else if (c.json)
      c.print_json(json_of_queue_status(*queue));
    else
      std::fputs(text_of(*queue).c_str(), stdout);
    std::fflush(stdout);
    if (!o.watch || over(*queue)) return static_cast<int>(ExitCode::done);
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::milliseconds(static_cast<std::int64_t>(1000 * o.interval_s));
    while (std::chrono::steady_clock::now() < until) {
      if (interrupted()) return static_cast<int>(ExitCode::interrupted);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (!c.json && ::isatty(1) != 1) c.print("");
  }
}

} // namespace

Command queue_status_command() {
  return {"queue-status", "Who holds which GPU, how far every campaign is, what died on the way",
          [](CLI::App& app, Context& c) {
            auto o = std::make_shared<QueueStatusOptions>();
            app.add_option("campaign", o->campaign, "one campaign (default: all)");
            app.add_flag(
                "--watch", o->watch,
                "again and again, until nothing is pending (with --json: a line each time)");
            app.add_option("--interval", o->interval_s, "seconds between looks")
                ->capture_default_str()
                ->check(CLI::Range(0.1, 3600.0));
            return [&c, o] { return run_queue_status(c, *o); };
          }};
}

} // namespace hebe::cli
