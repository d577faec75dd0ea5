#include "core/command.hpp"

#include "core/files.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace hebe {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Pipe {
  FileDescriptor read, write;
};

Result<Pipe> make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(io_refusal(errno, "pipe", program));
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Its own process group, so that a timeout ends what it started as well, and default signals: the
// caller may ignore SIGPIPE or handle SIGTERM.
int spawn(pid_t& pid, std::vector<char*>& argv, int out, int err) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, out, 1);
  ::posix_spawn_file_actions_adddup2(&files, err, 2);
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults, none;
  ::sigemptyset(&defaults);
  ::sigemptyset(&none);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return failed;
}

// Reads both streams until both have ended; false at the deadline.
bool read_streams(FileDescriptor& out, FileDescriptor& err, CommandResult& result,
                  SteadyClock::time_point deadline, const std::function<void()>& each_turn) {
  std::array<char, 1 << 14> buffer{};
  while (out || err) {
    each_turn();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> fds = {pollfd{out.get(), POLLIN, 0}, pollfd{err.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(),
               static_cast<int>(std::min<std::int64_t>(left.count(), 200))) <= 0)
      continue; // a closed stream is -1, which poll passes over; the deadline decides
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      const auto got = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      auto& stream = i == 0 ? out : err;
      if (got <= 0)
        stream.close();
      else
        (i == 0 ? result.out : result.err).append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  return true;
}

// A program may close its streams and go on: the deadline holds for its end as well.
bool wait_until(pid_t pid, int& status, SteadyClock::time_point deadline) {
  for (;;) {
    const auto ended = ::waitpid(pid, &status, WNOHANG);
    if (ended != 0 && !(ended < 0 && errno == EINTR)) return true;
    if (SteadyClock::now() >= deadline) return false;
    ::poll(nullptr, 0, 2);
  }
}

} // namespace

Result<CommandResult> run_command(std::vector<std::string> argv, Seconds timeout,
                                  const std::function<bool()>& interrupted) {
  if (argv.empty()) return refuse(RefusalCode::internal, "no program was named to run");
  const auto name = argv.front();
  HEBE_TRY(auto out, make_pipe(name));
  HEBE_TRY(auto err, make_pipe(name));
  std::vector<char*> words;
  for (auto& word : argv) words.push_back(word.data());
  words.push_back(nullptr);

  pid_t pid = -1;
  const int failed = spawn(pid, words, out.write.get(), err.write.get());
  if (failed == ENOENT)
    return refuse(RefusalCode::not_found, "there is no program \"" + name + "\" on PATH");
  if (failed != 0) return std::unexpected(io_refusal(failed, "start", name));
  out.write.close();
  err.write.close();

  CommandResult result;
  const auto deadline = SteadyClock::now() +
                        std::chrono::microseconds(static_cast<std::int64_t>(timeout.value() * 1e6));
  int status = 0;
  bool told = false;
  const auto pass_on_interruption = [&] {
    if (told || !interrupted || !interrupted()) return;
    told = true;
    ::kill(-pid, SIGTERM);
  };
  if (!read_streams(out.read, err.read, result, deadline, pass_on_interruption) ||
      !wait_until(pid, status, deadline)) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    return refuse(RefusalCode::io_failed,
                  fmt::format("{} did not end within {} s and was killed{}", name, timeout.value(),
                              result.err.empty() ? "" : "; it had said: " + result.err));
  }
  result.exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

} // namespace hebe
