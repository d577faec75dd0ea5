// Facts about the compile worker's parent: whatever a worker does, the answer is a result or a
// refusal. The workers here are small shell scripts.
#include "kernel/worker.hpp"

#include <csignal>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "../data/support/child_process.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::kernel {
namespace {

std::unique_ptr<Worker> worker(const std::string& script,
                               std::map<std::string, std::string> environment = {}) {
  return Worker::start({{"/bin/sh", "-c", script}, std::move(environment)}).value();
}

Refusal refusal_of(const std::string& script, Seconds timeout = Seconds(20)) {
  const auto answer = worker(script)->request("compile", Json::object(), timeout);
  return answer ? Refusal{RefusalCode::internal, "it answered " + answer->dump(), {}, {}, {}}
                : answer.error();
}

TEST(Worker, answers_are_results_request_by_request) {
  const auto w = worker(R"(
    while read -r line; do i=$((i+1)); echo "{\"id\":$i,\"ok\":true,\"result\":{\"asked\":$line}}"; done)");
  for (int i = 1; i <= 3; ++i) {
    const auto answer = w->request("hello", {{"n", i}});
    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(answer->at("asked"), (Json{{"id", i}, {"method", "hello"}, {"params", {{"n", i}}}}));
  }
}

TEST(Worker, an_answer_may_be_large_and_come_in_pieces) {
  const auto w = worker(R"(read -r line; printf '{"id":1,"ok":true,'; printf '"result":"'
    head -c 3000000 /dev/zero | tr '\0' 'x'; printf '"}\n'; read -r line)");
  const auto answer = w->request("compile", Json::object());
  ASSERT_TRUE(answer) << answer.error().what.substr(0, 200);
  EXPECT_EQ(answer->get<std::string>().size(), 3'000'000U);
}

TEST(Worker, a_failure_becomes_the_refusal_of_its_kind_with_place_and_traceback) {
  const std::pair<const char*, RefusalCode> table[] = {
      {"case_not_found", RefusalCode::case_not_found},
      {"case_syntax", RefusalCode::case_failed},
      {"case_error", RefusalCode::case_failed},
      {"reference_failed", RefusalCode::case_failed},
      {"unknown_parameter", RefusalCode::bad_argument},
      {"bad_parameter", RefusalCode::bad_argument},
      {"unknown_option", RefusalCode::bad_argument},
      {"bad_option", RefusalCode::bad_argument},
      {"compile_failed", RefusalCode::compile_failed},
      {"toolchain_unavailable", RefusalCode::toolchain_unavailable},
      {"internal", RefusalCode::worker_failed},
      {"unheard_of", RefusalCode::worker_failed},
  };
  const auto w = worker(R"(while read -r line; do i=$((i+1)); kind=${line#*@}; kind=${kind%%@*}
    printf '%s\n' "{\"id\":$i,\"ok\":false,\"error\":{\"kind\":\"$kind\",\"message\":\"it failed\",\"where\":\"case.py:7\",\"traceback\":\"Traceback:\\n  boom\\n\"}}"
    done)");
  for (const auto& [kind, code] : table) {
    const auto answer = w->request("compile", {{"kind", std::string("@") + kind + "@"}});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code) << kind;
    EXPECT_EQ(answer.error().what, "it failed\nTraceback:\n  boom") << kind;
    EXPECT_EQ(answer.error().where, "case.py:7");
  }
}

TEST(Worker, one_that_dies_is_refused_with_how_it_ended_and_its_last_words) {
  struct Row {
    const char *script, *how;
  };
  const Row table[] = {
      {"read -r line; echo 'ImportError: no triton' >&2; exit 3", "it exited with code 3"},
      {"read -r line; echo 'ImportError: no triton' >&2; kill -SEGV $$",
       "it was killed by signal 11"},
      {"read -r line; echo 'ImportError: no triton' >&2; exit 0", "it exited with code 0"},
  };
  for (const auto& row : table) {
    const auto r = refusal_of(row.script);
    EXPECT_EQ(r.code, RefusalCode::worker_failed);
    EXPECT_NE(r.what.find("the worker ended before it answered \"compile\""), std::string::npos)
        << r.what;
    EXPECT_NE(r.what.find(row.how), std::string::npos) << r.what;
    EXPECT_TRUE(r.what.ends_with("its last words:\nImportError: no triton")) << r.what;
    EXPECT_EQ(r.where, "compile worker: /bin/sh");
    EXPECT_FALSE(r.next.empty());
  }
}

TEST(Worker, one_that_cannot_be_started_is_refused_with_the_reason) {
  const auto started = Worker::start({{"/nonexistent/python"}, {}});
  ASSERT_TRUE(started); // only the first request can tell
  const auto answer = (*started)->request("hello", Json::object());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, RefusalCode::worker_failed);
  EXPECT_NE(answer.error().what.find("it exited with code 127"), std::string::npos)
      << answer.error().what;
  EXPECT_NE(answer.error().what.find("No such file or directory"), std::string::npos)
      << answer.error().what;
}

TEST(Worker, one_that_dies_between_requests_is_a_refusal_and_not_a_sigpipe) {
  const auto w = worker("read -r line; echo '{\"id\":1,\"ok\":true,\"result\":1}'; exit 5");
  ASSERT_TRUE(w->request("hello", Json::object()));
  const auto answer = w->request("compile", Json::object());
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("it exited with code 5"), std::string::npos)
      << answer.error().what;
}

TEST(Worker, the_signal_handler_of_the_caller_is_left_as_it_was) {
  struct sigaction mine {
  }, after{};
  mine.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &mine, nullptr);
  (void)refusal_of("exit 1");
  ::sigaction(SIGPIPE, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

TEST(Worker, one_that_hangs_is_refused_after_the_timeout_and_is_gone) {
  const test::ScratchFolder folder;
  const auto pid_file = (folder / "pid").string();
  const auto r =
      refusal_of("echo $$ > " + pid_file + "; read -r line; sleep 1000 & wait", Seconds(0.2));
  EXPECT_EQ(r.code, RefusalCode::worker_failed);
  EXPECT_NE(r.what.find("no answer to \"compile\" within 0.2 s; it was ended"), std::string::npos)
      << r.what;
  EXPECT_EQ(::kill(std::stoi(test::bytes_of(pid_file)), 0), -1);
}

TEST(Worker, half_an_answer_is_no_answer) {
  const auto r = refusal_of(R"(read -r line; printf '{"id":1,"ok":tr'; sleep 1000)", Seconds(0.2));
  EXPECT_NE(r.what.find("within 0.2 s"), std::string::npos) << r.what;
}

TEST(Worker, garbage_is_refused_and_shown) {
  const std::pair<const char*, const char*> table[] = {
      {"Compiling...", "is not the protocol: \"Compiling...\""},
      {"[1]", "is not the protocol"},
      {"{}", "is not the protocol"},
      {"{\"id\":1}", "is not the protocol"},
      {"{\"id\":1,\"ok\":true,\"ok\":true}", "is not the protocol"},
      {"{\"id\":2,\"ok\":true,\"result\":{}}", "answered another request than \"compile\""},
      {"{\"id\":\"1\",\"ok\":true,\"result\":{}}", "answered another request than \"compile\""},
      {"{\"ok\":true,\"result\":{}}", "answered another request than \"compile\""},
      {"", "is not the protocol"},
      {"{\"id\":1,\"ok\":true}", "is not the protocol"},
      {"{\"id\":1,\"ok\":false}", "is not the protocol"},
  };
  for (const auto& [line, what] : table) {
    const auto r = refusal_of("read -r line; printf '%s\\n' '" + std::string(line) + "'");
    EXPECT_EQ(r.code, RefusalCode::worker_failed) << line;
    EXPECT_NE(r.what.find(what), std::string::npos) << line << " -> " << r.what;
  }
}

TEST(Worker, one_that_failed_is_never_asked_again) {
  const auto w = worker("while read -r line; do echo garbage; done");
  ASSERT_FALSE(w->request("hello", Json::object()));
  const auto again = w->request("hello", Json::object());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, RefusalCode::worker_failed);
  EXPECT_NE(again.error().what.find("failed earlier"), std::string::npos);
}

TEST(Worker, one_that_says_no_may_be_asked_again) {
  const auto w =
      worker(R"(read -r l; echo '{"id":1,"ok":false,"error":{"kind":"bad_option","message":"no"}}'
    read -r l; echo '{"id":2,"ok":true,"result":"yes"}'; read -r l)");
  EXPECT_EQ(w->request("compile", Json::object()).error().what, "no");
  EXPECT_EQ(w->request("compile", Json::object()).value(), "yes");
}

TEST(Worker, a_flood_of_messages_does_not_block_it_and_only_the_last_words_are_kept) {
  const auto r = refusal_of(
      R"(read -r line; head -c 2000000 /dev/zero | tr '\0' 'e' >&2; echo ' the end' >&2; exit 9)");
  EXPECT_NE(r.what.find("it exited with code 9"), std::string::npos);
  EXPECT_TRUE(r.what.ends_with("eee the end"));
  EXPECT_LT(r.what.size(), 20'000U);
  const auto w = worker(
      R"(read -r line; head -c 2000000 /dev/zero | tr '\0' 'e' >&2; echo '{"id":1,"ok":true,"result":7}'; read -r l)");
  EXPECT_EQ(w->request("compile", Json::object()).value(), 7);
}

// In a child with an alarm: a parent that waits for good would hang the tests.
int with_alarm(const std::function<bool()>& fact) {
  return test::exit_code_in_child([&] {
    ::alarm(60);
    return fact() ? 0 : 1;
  });
}

TEST(Worker, one_that_does_not_read_a_large_request_is_refused_after_the_timeout) {
  EXPECT_EQ(with_alarm([] {
              const auto answer =
                  worker("sleep 1000 & wait")
                      ->request("compile", {{"x", std::string(1 << 20, 'x')}}, Seconds(0.2));
              return !answer && answer.error().what.find(
                                    "the worker did not take the request \"compile\"") == 0;
            }),
            0);
}

TEST(Worker, one_that_talks_much_before_it_reads_is_listened_to) {
  EXPECT_EQ(with_alarm([] {
              const auto answer =
                  worker(R"(head -c 300000 /dev/zero | tr '\0' 'e' >&2; read -r line
                            echo '{"id":1,"ok":true,"result":7}'; read -r line)")
                      ->request("compile", {{"x", std::string(200'000, 'x')}}, Seconds(50));
              return answer && *answer == 7;
            }),
            0);
}

TEST(Worker, its_environment_is_the_parents_with_what_was_added) {
  ::setenv("HEBE_TEST_KEPT", "kept", 1);
  ::setenv("HEBE_TEST_REPLACED", "old", 1);
  const auto w = worker(
      R"(read -r l; echo "{\"id\":1,\"ok\":true,\"result\":\"$HEBE_TEST_KEPT $HEBE_TEST_REPLACED $HEBE_TEST_NEW\"}"; read -r l)",
      {{"HEBE_TEST_REPLACED", "new"}, {"HEBE_TEST_NEW", "added"}});
  EXPECT_EQ(w->request("hello", Json::object()).value(), "kept new added");
}

TEST(Worker, a_request_that_is_not_utf8_is_refused) {
  const auto w = worker("cat > /dev/null");
  Result<Json> answer;
  ASSERT_NO_THROW(answer = w->request("compile", {{"case", "\xff.py"}}, Seconds(0.2)));
  EXPECT_FALSE(answer);
}

TEST(Worker, ends_with_its_owner) {
  const test::ScratchFolder folder;
  const auto pid_file = (folder / "pid").string();
  {
    const auto w = worker("echo $$ > " + pid_file +
                          R"(; while read -r l; do echo '{"id":1,"ok":true,"result":1}'; done)");
    ASSERT_TRUE(w->request("hello", Json::object()));
  }
  EXPECT_EQ(::kill(std::stoi(test::bytes_of(pid_file)), 0), -1); // reaped: no such process
}

} // namespace
} // namespace hebe::kernel
