#include "kernel/worker.hpp"

#include "core/files.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace hebe::kernel {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::size_t kStderrKept = 16 * 1024;
constexpr std::size_t kLongestAnswer = 256U << 20;

struct Pipe {
  FileDescriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(io_refusal(errno, "pipe", "worker"));
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

RefusalCode code_for(const std::string& kind) {
  static const std::map<std::string, RefusalCode> kCodes = {
      {"case_not_found", RefusalCode::case_not_found},
      {"case_syntax", RefusalCode::case_failed},
      {"case_error", RefusalCode::case_failed},
      {"reference_failed", RefusalCode::case_failed},
      {"unknown_parameter", RefusalCode::bad_argument},
      {"bad_parameter", RefusalCode::bad_argument},
      {"unknown_option", RefusalCode::bad_argument},
      {"bad_option", RefusalCode::bad_argument},
      {"compile_failed", RefusalCode::compile_failed},
      {"no_space", RefusalCode::no_space},
      {"no_permission", RefusalCode::no_permission},
      {"toolchain_unavailable", RefusalCode::toolchain_unavailable}};
  const auto hit = kCodes.find(kind);
  return hit == kCodes.end() ? RefusalCode::worker_failed : hit->second;
}

std::string text_or(const Json& object, const char* name) {
  const auto hit = object.find(name);
  return hit != object.end() && hit->is_string() ? hit->get<std::string>() : std::string();
}

Refusal refusal_from(const Json& error) {
  Refusal r;
  r.code = code_for(text_or(error, "kind"));
  r.what = text_or(error, "message");
  if (const auto trace = text_or(error, "traceback"); !trace.empty()) r.what += "\n" + trace;
  while (r.what.ends_with('\n')) r.what.pop_back();
  r.where = text_or(error, "where");
  if (r.code == RefusalCode::no_space || r.code == RefusalCode::no_permission)
    r.next = "free space or make it writable, or choose another --data-root";
  return r;
}

} // namespace

struct Worker::Process {
  pid_t pid = -1;
  FileDescriptor to, from, errors;
  std::string name, pending, last_words;
  std::int64_t next_id = 1;
  bool usable = true;

  ~Process() {
    to.close(); // end of input asks it to leave
    if (pid < 0) return;
    for (int i = 0; i < 100; ++i) {
      if (::waitpid(pid, nullptr, WNOHANG) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  void keep_last_words(std::string_view text) {
    last_words += text;
    if (last_words.size() > kStderrKept) last_words.erase(0, last_words.size() - kStderrKept);
  }

  void drain_errors() {
    std::array<char, 4096> buffer{};
    pollfd p{errors.get(), POLLIN, 0};
    while (errors && ::poll(&p, 1, 0) > 0) {
      const auto got = ::read(errors.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        errors.close();
        return;
      }
      keep_last_words({buffer.data(), static_cast<std::size_t>(got)});
    }
  }

  std::unexpected<Refusal> give_up(std::string what) {
    usable = false;
    if (pid > 0) {
      // A dead worker says how it ended; one that hangs or talks garbage is ended here.
      int status = 0;
      pid_t done = 0;
      for (int i = 0; i < 20 && done == 0; ++i) {
        done = ::waitpid(pid, &status, WNOHANG);
        if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (done == pid) {
        what += "; it " + how_it_ended(status);
      } else {
        ::kill(-pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        what += "; it was ended";
      }
      pid = -1;
    }
    drain_errors();
    if (!last_words.empty()) what += "\nits last words:\n" + last_words;
    while (what.ends_with('\n')) what.pop_back();
    return refuse(RefusalCode::worker_failed, std::move(what),
                  "run the same command again; if it repeats, `hebe doctor` checks the tool chain",
                  "compile worker: " + name);
  }
};

Worker::Worker(std::unique_ptr<Process> process) : process_(std::move(process)) {}
Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::start(WorkerCommand command) {
  HEBE_TRY(auto in, make_pipe());
  HEBE_TRY(auto out, make_pipe());
  HEBE_TRY(auto err, make_pipe());

  // All memory is prepared before the fork: between fork and exec only plain system calls.
  std::vector<std::string> variables;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string variable = *e;
    if (!command.environment.contains(variable.substr(0, variable.find('='))))
      variables.push_back(variable);
  }
  for (const auto& [key, value] : command.environment) variables.push_back(key + "=" + value);
  std::vector<char*> argv, envp;
  for (auto& a : command.argv) argv.push_back(a.data());
  for (auto& v : variables) envp.push_back(v.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(io_refusal(errno, "fork", command.argv.front()));
  if (pid == 0) {
    ::setpgid(0, 0); // Ctrl-C is the parent's to handle
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(in.read.get(), 0);
    ::dup2(out.write.get(), 1);
    ::dup2(err.write.get(), 2);
    ::execvpe(argv[0], argv.data(), envp.data());
    const char* why = std::strerror(errno);
    [[maybe_unused]] const auto put = ::write(2, why, std::strlen(why));
    ::_exit(127);
  }
  auto process = std::make_unique<Process>();
  process->pid = pid;
  process->name = command.argv.front();
  process->to = std::move(in.write);
  ::fcntl(process->to.get(), F_SETFL, O_NONBLOCK); // a request waits no longer than its timeout
  process->from = std::move(out.read);
  process->errors = std::move(err.read);
  return std::unique_ptr<Worker>(new Worker(std::move(process)));
}

Result<Json> Worker::request(std::string_view method, const Json& parameters, Seconds timeout) {
  auto& p = *process_;
  if (!p.usable)
    return refuse(RefusalCode::worker_failed, "the compile worker failed earlier and is gone");
  const auto id = p.next_id++;
  std::string line;
  try {
    line = Json{{"id", id}, {"method", method}, {"params", parameters}}.dump() + "\n";
  } catch (const Json::exception& e) { // a path or value that is not UTF-8
    return refuse(RefusalCode::bad_argument,
                  fmt::format("the request \"{}\" has no JSON form: {}", method, e.what()),
                  "use names in UTF-8");
  }

  // SIGPIPE would end us where the worker's end is what must be reported.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const auto deadline = SteadyClock::now() +
                        std::chrono::microseconds(static_cast<std::int64_t>(timeout.value() * 1e6));
  bool sent = true;
  for (std::string_view rest = line; !rest.empty() && sent;) {
    const auto put = ::write(p.to.get(), rest.data(), rest.size());
    if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
    if (put > 0 || (put < 0 && errno == EINTR)) continue;
    sent = put < 0 && errno == EAGAIN && SteadyClock::now() < deadline;
    // The pipe is full: the worker is busy, or waits for us to take its messages.
    std::array<pollfd, 2> fds = {pollfd{p.to.get(), POLLOUT, 0}, pollfd{p.errors.get(), POLLIN, 0}};
    if (sent && ::poll(fds.data(), p.errors ? 2 : 1, 20) > 0) p.drain_errors();
  }
  ::sigaction(SIGPIPE, &before, nullptr);
  if (!sent) return p.give_up(fmt::format("the worker did not take the request \"{}\"", method));

  std::array<char, 1 << 16> buffer{};
  for (std::size_t searched = 0;;) {
    if (const auto end = p.pending.find('\n', searched); end != std::string::npos) {
      const std::string answer = p.pending.substr(0, end);
      p.pending.erase(0, end + 1);
      auto parsed = parse_json(answer, "the worker's answer");
      if (!parsed || !parsed->is_object() || !parsed->contains("ok") ||
          !parsed->contains(parsed->at("ok") == true ? "result" : "error"))
        return p.give_up(fmt::format("the worker's answer to \"{}\" is not the protocol: {:?}",
                                     method, answer.substr(0, 200)));
      if (!parsed->contains("id") || parsed->at("id") != id)
        return p.give_up(fmt::format("the worker answered another request than \"{}\"", method));
      if (parsed->at("ok") == true) return std::move(parsed->at("result"));
      p.drain_errors();
      return std::unexpected(refusal_from(parsed->at("error")));
    }
    searched = p.pending.size();
    if (searched > kLongestAnswer) return p.give_up("the worker's answer has no end");
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0)
      return p.give_up(fmt::format("no answer to \"{}\" within {} s", method, timeout.value()));
    std::array<pollfd, 2> fds = {pollfd{p.from.get(), POLLIN, 0},
                                 pollfd{p.errors.get(), POLLIN, 0}};
    const nfds_t count = p.errors ? 2 : 1;
    if (::poll(fds.data(), count,
               static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1000))) < 0)
      continue; // EINTR: the deadline decides
    if (count == 2 && fds[1].revents != 0) p.drain_errors();
    if (fds[0].revents == 0) continue;
    const auto got = ::read(p.from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return p.give_up(fmt::format("the worker ended before it answered \"{}\"", method));
    p.pending.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

} // namespace hebe::kernel
