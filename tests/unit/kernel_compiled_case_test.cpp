// Facts about compiled cases: every artifact is stored before it is named, and an answer that lacks
// something is refused. The worker here is a shell script that prints a prepared answer.
#include "kernel/compiled_case.hpp"

#include "core/sha256.hpp"

#include <gtest/gtest.h>

#include "../data/support/launch_json.hpp"
#include "../data/support/scratch_folder.hpp"

namespace hebe::kernel {
namespace {

Json compile_answer() {
  Json artifacts;
  for (const char* kind : {"source", "ttir", "ttgir", "llir", "ptx"})
    artifacts[kind] = {{"encoding", "utf-8"}, {"data", std::string("text of ") + kind}};
  artifacts["cubin"] = {{"encoding", "base64"}, {"data", "f0VMRgD/"}}; // 7f 45 4c 46 00 ff
  return {{"launch", test::vector_launch()},
          {"artifacts", artifacts},
          {"provenance", {{"source_name", "vector_add.py"}}},
          {"resources", {{"registers", 26}}}};
}

Result<CompiledCase> compiled_from(const Json& answer, const test::ScratchFolder& folder) {
  test::overwrite(folder / "answer",
                  Json{{"id", 1}, {"ok", true}, {"result", answer}}.dump() + "\n");
  auto w = Worker::start({{"/bin/sh", "-c", "read -r line; cat \"$ANSWER\"; read -r line"},
                          {{"ANSWER", (folder / "answer").string()}}})
               .value();
  CaseRequest request;
  request.file = "case.py";
  return compile_case(*w, ArtifactStore(folder.path()), request, folder / "cache");
}

TEST(CompiledCase, every_artifact_is_in_the_store_under_its_digest) {
  const test::ScratchFolder folder;
  const auto c = compiled_from(compile_answer(), folder);
  ASSERT_TRUE(c) << c.error().what;
  EXPECT_EQ(c->cubin, std::string("\x7f"
                                  "ELF\0\xff",
                                  6));
  EXPECT_EQ(c->artifacts.at("cubin"), sha256_hex(c->cubin));
  EXPECT_EQ(c->artifacts.size(), 6U); // sass is optional
  const ArtifactStore store(folder.path());
  EXPECT_EQ(store.get(c->artifacts.at("ptx")).value(), "text of ptx");
  EXPECT_EQ(c->launch.name, "vector_add");
  EXPECT_EQ(c->provenance.at("source_name"), "vector_add.py");
}

TEST(CompiledCase, base64_padding_is_taken_off) {
  const std::pair<const char*, std::string> table[] = {
      {"", ""},
      {"YQ==", "a"},
      {"YWI=", "ab"},
      {"YWJj", "abc"},
      {"AAAA", std::string(3, '\0')},
      {"AA==", std::string(1, '\0')},
  };
  for (const auto& [data, bytes] : table) {
    const test::ScratchFolder folder;
    auto answer = compile_answer();
    answer["artifacts"]["cubin"]["data"] = data;
    const auto c = compiled_from(answer, folder);
    ASSERT_TRUE(c) << data << ": " << c.error().what;
    EXPECT_EQ(c->cubin, bytes) << data;
  }
}

TEST(CompiledCase, an_answer_that_lacks_something_is_refused_in_words) {
  struct Row {
    const char* pointer;
    Json value; // null: the member is removed
    RefusalCode code;
    const char* what;
  };
  const Row table[] = {
      {"/artifacts/ptx", nullptr, RefusalCode::compile_failed, "made no ptx"},
      {"/artifacts/cubin", nullptr, RefusalCode::compile_failed, "made no cubin"},
      {"/artifacts/cubin/data", "!!!!", RefusalCode::worker_failed, "is not base64"},
      {"/artifacts/cubin/data", "=", RefusalCode::worker_failed, "is not base64"},
      {"/artifacts/cubin/data", nullptr, RefusalCode::worker_failed, "lacks something"},
      {"/artifacts/cubin/data", 7, RefusalCode::worker_failed, "lacks something"},
      {"/artifacts", nullptr, RefusalCode::worker_failed, "lacks something"},
      {"/launch", nullptr, RefusalCode::worker_failed, "lacks something"},
      {"/provenance", nullptr, RefusalCode::worker_failed, "lacks something"},
      {"/launch/schema", "hebe.launch/9", RefusalCode::bad_schema, "found \"hebe.launch/9\""},
  };
  for (const auto& row : table) {
    const test::ScratchFolder folder;
    auto answer = compile_answer();
    const Json::json_pointer where(row.pointer);
    if (row.value.is_null())
      answer.at(where.parent_pointer()).erase(where.back());
    else
      answer[where] = row.value;
    const auto c = compiled_from(answer, folder);
    ASSERT_FALSE(c) << row.pointer;
    EXPECT_EQ(c.error().code, row.code) << row.pointer << ": " << c.error().what;
    EXPECT_NE(c.error().what.find(row.what), std::string::npos) << c.error().what;
  }
}

} // namespace
} // namespace hebe::kernel
