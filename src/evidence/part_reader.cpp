#include "evidence/dataset_arrow.hpp"
#include "evidence/dataset_parquet.hpp"

#include <fmt/format.h>

namespace hebe::evidence {
namespace fs = std::filesystem;
namespace {

arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> open_part(const fs::path& file) {
  ARROW_ASSIGN_OR_RAISE(auto source, arrow::io::ReadableFile::Open(file.string()));
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        parquet::arrow::OpenFile(source, arrow::default_memory_pool()));
  reader->set_use_threads(false);
  return reader;
}

} // namespace

struct PartReader::State {
  fs::path dataset;
  DatasetTable table;
  std::vector<std::string> parts;
  int layout = kDatasetLayout;
  std::size_t next_part = 0;
  int next_group = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::shared_ptr<arrow::Table> rest; ///< rows of the current row group that were not taken yet

  std::string where() const {
    return (dataset / parts.at(next_part == 0 ? 0 : next_part - 1)).string();
  }

  // False: there is nothing left.
  arrow::Result<bool> refill() {
    while (rest == nullptr || rest->num_rows() == 0) {
      if (reader == nullptr || next_group >= reader->num_row_groups()) {
        if (next_part == parts.size()) return false;
        ARROW_ASSIGN_OR_RAISE(reader, open_part(dataset / parts[next_part++]));
        next_group = 0;
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(rest, reader->ReadRowGroup(next_group++));
    }
    return true;
  }

  // Up to `rows` rows; fewer only at the end.
  arrow::Result<std::shared_ptr<arrow::Table>> take(std::int64_t rows) {
    std::vector<std::shared_ptr<arrow::Table>> pieces;
    while (rows > 0) {
      ARROW_ASSIGN_OR_RAISE(const bool more, refill());
      if (!more) break;
      pieces.push_back(rest->Slice(0, rows));
      rows -= pieces.back()->num_rows();
      rest = rest->Slice(pieces.back()->num_rows());
    }
    if (pieces.empty()) return nullptr;
    ARROW_ASSIGN_OR_RAISE(auto joined, arrow::ConcatenateTables(pieces));
    return joined->CombineChunks();
  }
};

PartReader::PartReader(fs::path dataset, DatasetTable table, std::vector<std::string> parts,
                       int layout)
    : state_(std::make_unique<State>()) {
  state_->dataset = std::move(dataset);
  state_->table = table;
  state_->parts = std::move(parts);
  state_->layout = layout;
}
PartReader::PartReader(PartReader&&) noexcept = default;
PartReader& PartReader::operator=(PartReader&&) noexcept = default;
PartReader::~PartReader() = default;

Status PartReader::expect(const StoredRun& run) {
  HEBE_TRY(const auto expected, arrow_rows(state_->table, run, state_->layout));
  const auto found = state_->take(expected->num_rows());
  if (!found.ok()) return dataset_arrow_refusal(found.status(), state_->where());
  const auto rows = *found == nullptr ? 0 : (*found)->num_rows();
  if (rows != expected->num_rows())
    return refuse(
        RefusalCode::analysis_mismatch,
        fmt::format("required {} rows of run {}, found {}", expected->num_rows(), run.run_id, rows),
        {}, state_->where());
  for (int i = 0; rows > 0 && i < expected->num_columns(); ++i)
    if (!expected->column(i)->Equals((*found)->column(i)))
      return refuse(
          RefusalCode::analysis_mismatch,
          fmt::format("column {} is not what run {} gives", expected->field(i)->name(), run.run_id),
          {}, state_->where());
  return {};
}

Status PartReader::skip(const std::string& run_id, std::int64_t rows) {
  const auto found = state_->take(rows);
  if (!found.ok()) return dataset_arrow_refusal(found.status(), state_->where());
  const auto have = *found == nullptr ? 0 : (*found)->num_rows();
  bool right = have == rows;
  if (have > 0) {
    const auto ids = (*found)->GetColumnByName("run_id");
    const auto* text =
        ids == nullptr ? nullptr : dynamic_cast<const arrow::StringArray*>(ids->chunk(0).get());
    right = right && text != nullptr;
    for (std::int64_t i = 0; right && i < have; ++i)
      right = text->IsValid(i) && text->GetView(i) == run_id;
  }
  if (right) return {};
  return refuse(RefusalCode::analysis_mismatch,
                fmt::format("required {} rows of run {}, found others or fewer", rows, run_id), {},
                state_->where());
}

Status PartReader::at_end() {
  const auto more = state_->refill();
  if (!more.ok()) return dataset_arrow_refusal(more.status(), state_->where());
  if (*more)
    return refuse(RefusalCode::analysis_mismatch, "there are rows of no listed run", {},
                  state_->where());
  return {};
}

Result<std::int64_t> check_part(const fs::path& file, DatasetTable table,
                                const std::string& provenance, int layout,
                                const std::string& where) {
  const auto reader = open_part(file);
  if (!reader.ok()) return dataset_arrow_refusal(reader.status(), where);
  std::shared_ptr<arrow::Schema> schema;
  if (const auto status = (*reader)->GetSchema(&schema); !status.ok())
    return dataset_arrow_refusal(status, where);
  const auto required = arrow_schema(table, provenance, layout);
  if (schema->num_fields() != required->num_fields())
    return refuse(
        RefusalCode::bad_schema,
        fmt::format("required {} columns, found {}", required->num_fields(), schema->num_fields()),
        {}, where);
  for (int i = 0; i < schema->num_fields(); ++i) {
    const auto &found = schema->field(i), &wanted = required->field(i);
    bool same = found->name() == wanted->name() && found->type()->Equals(wanted->type()) &&
                found->metadata() != nullptr;
    for (const char* key : {"unit", "description"})
      same = same &&
             found->metadata()->Get(key).ValueOr("?") == wanted->metadata()->Get(key).ValueOr("");
    if (!same)
      return refuse(RefusalCode::bad_schema,
                    fmt::format("required column {}, found {}", wanted->ToString(true),
                                found->ToString(true)),
                    {}, where);
  }
  for (const char* key : {"schema", "provenance"}) {
    const auto found = schema->metadata() ? schema->metadata()->Get(key).ValueOr("none") : "none";
    if (const auto wanted = required->metadata()->Get(key).ValueOr(""); found != wanted)
      return refuse(RefusalCode::bad_schema,
                    fmt::format("required {} {}, found {}", key, wanted, found), {}, where);
  }
  return (*reader)->parquet_reader()->metadata()->num_rows();
}

} // namespace hebe::evidence
