#include "core/files.hpp"
#include "core/sha256.hpp"
#include "evidence/dataset_arrow.hpp"
#include "evidence/dataset_parquet.hpp"

#include <fmt/format.h>

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hebe::evidence {
namespace fs = std::filesystem;

// A file that is hashed while it is written, and whose failures stay refusals: Arrow's own file
// stream would turn a full disk into prose.
class HashedFile final : public arrow::io::OutputStream {
public:
  explicit HashedFile(fs::path path) : path_(std::move(path)) {
    fd_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd_) (void)fail("create");
  }
  arrow::Status Write(const void* data, std::int64_t size) override {
    std::string_view rest(static_cast<const char*>(data), static_cast<std::size_t>(size));
    sha_.update(rest);
    position_ += size;
    while (!rest.empty()) {
      const auto put = ::write(fd_.get(), rest.data(), rest.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return fail("write");
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    return arrow::Status::OK();
  }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return !fd_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }

  [[nodiscard]] Result<std::string> seal() {
    if (!failure_ && ::fsync(fd_.get()) != 0) (void)fail("fsync");
    if (!failure_ && ::fchmod(fd_.get(), 0444) != 0) (void)fail("chmod");
    if (failure_) return std::unexpected(*failure_);
    fd_.close();
    return sha_.hex();
  }
  [[nodiscard]] const std::optional<Refusal>& failure() const { return failure_; }
  [[nodiscard]] std::int64_t position() const { return position_; }

private:
  arrow::Status fail(std::string_view operation) {
    failure_ = io_refusal(errno, operation, path_);
    return arrow::Status::IOError(failure_->what);
  }
  fs::path path_;
  FileDescriptor fd_;
  Sha256 sha_;
  std::int64_t position_ = 0;
  std::optional<Refusal> failure_;
};

std::string partition_path(DatasetTable table, const std::string& provenance,
                           const std::string& kind) {
  return fmt::format("{}/provenance={}/kind={}", name_of(table), provenance, kind);
}

struct PartWriter::State {
  fs::path dataset;
  DatasetTable table;
  std::string folder;
  std::shared_ptr<arrow::Schema> schema;
  PartBounds bounds;
  std::vector<DatasetFile> files;
  std::shared_ptr<HashedFile> sink;
  std::unique_ptr<parquet::arrow::FileWriter> writer;

  Status checked(const arrow::Status& status) {
    if (sink && sink->failure()) return std::unexpected(*sink->failure());
    if (!status.ok()) return dataset_arrow_refusal(status, files.back().path);
    return {};
  }

  Status open() {
    HEBE_CHECK(make_directories(dataset / folder));
    files.push_back({fmt::format("{}/part-{:05}.parquet", folder, files.size()), table, 0, 0, {}});
    sink = std::make_shared<HashedFile>(dataset / files.back().path);
    if (sink->failure()) return std::unexpected(*sink->failure());
    const auto properties = parquet::WriterProperties::Builder()
                                .compression(parquet::Compression::ZSTD)
                                ->max_row_group_length(bounds.rows_per_group)
                                ->build();
    auto made = parquet::arrow::FileWriter::Open(
        *schema, arrow::default_memory_pool(), sink, properties,
        parquet::ArrowWriterProperties::Builder().store_schema()->build());
    HEBE_CHECK(checked(made.status()));
    writer = std::move(*made);
    return {};
  }

  Status close() {
    if (!writer) return {};
    HEBE_CHECK(checked(writer->Close()));
    writer.reset();
    files.back().bytes = static_cast<std::uint64_t>(sink->position());
    HEBE_TRY(files.back().sha256, sink->seal());
    sink.reset();
    return {};
  }

  Status write(const arrow::Table& rows) {
    for (std::int64_t at = 0; at < rows.num_rows();) {
      if (!writer) HEBE_CHECK(open());
      auto& file = files.back();
      const auto count = std::min(rows.num_rows() - at, bounds.rows - file.rows);
      auto batch = rows.Slice(at, count)->CombineChunksToBatch();
      HEBE_CHECK(checked(batch.status()));
      HEBE_CHECK(checked(writer->WriteRecordBatch(**batch)));
      file.rows += count;
      at += count;
      if (file.rows >= bounds.rows || static_cast<std::uint64_t>(sink->position()) >= bounds.bytes)
        HEBE_CHECK(close());
    }
    return {};
  }
};

PartWriter::PartWriter(fs::path dataset, DatasetTable table, const std::string& provenance,
                       const std::string& kind, PartBounds bounds)
    : state_(std::make_unique<State>()) {
  state_->dataset = std::move(dataset);
  state_->table = table;
  state_->folder = partition_path(table, provenance, kind);
  state_->schema = arrow_schema(table, provenance, kDatasetLayout);
  state_->bounds = bounds;
}
PartWriter::PartWriter(PartWriter&&) noexcept = default;
PartWriter& PartWriter::operator=(PartWriter&&) noexcept = default;
PartWriter::~PartWriter() = default;

Result<std::int64_t> PartWriter::add(const StoredRun& run) {
  HEBE_TRY(const auto rows, arrow_rows(state_->table, run, kDatasetLayout));
  HEBE_CHECK(state_->write(*rows));
  return rows->num_rows();
}

Result<std::vector<DatasetFile>> PartWriter::finish() {
  HEBE_CHECK(state_->close());
  return state_->files;
}

} // namespace hebe::evidence
