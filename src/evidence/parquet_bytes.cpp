#include "evidence/parquet_bytes.hpp"

namespace hebe::evidence {

arrow::Result<std::string> parquet_of(const arrow::Table& table) {
  constexpr std::int64_t kRowGroup = 1 << 20;
  ARROW_ASSIGN_OR_RAISE(auto stream, arrow::io::BufferOutputStream::Create());
  const auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  ARROW_RETURN_NOT_OK(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), stream,
                                                 kRowGroup, properties, arrow_properties));
  ARROW_ASSIGN_OR_RAISE(auto buffer, stream->Finish());
  return buffer->ToString();
}

arrow::Result<std::shared_ptr<arrow::Table>> table_of_parquet(std::string_view bytes) {
  auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<std::int64_t>(bytes.size()));
  ARROW_ASSIGN_OR_RAISE(auto reader,
                        parquet::arrow::OpenFile(std::make_shared<arrow::io::BufferReader>(buffer),
                                                 arrow::default_memory_pool()));
  reader->set_use_threads(false);
  ARROW_ASSIGN_OR_RAISE(auto table, reader->ReadTable());
  return table->CombineChunks();
}

} // namespace hebe::evidence
