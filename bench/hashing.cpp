// hebe_hashing: do we hash files as fast as the processor hashes memory? In: options; out, of one
// run: the rate of OpenSSL's SHA-256 in memory (blocks of 16 KiB, what `openssl speed` measures),
// our rates on a file in the page cache, their ratio, and the speed-up over many files on all
// cores. Exit code 0: the ratio is at least 0.8; 1: it is not.
#include "core/files.hpp"
#include "core/parallel.hpp"
#include "core/sha256.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <filesystem>
#include <fstream>

#include <ctime>
#include <unistd.h>

namespace hebe::bench {
namespace {
namespace fs = std::filesystem;

constexpr double kDemandedRatio = 0.8;
constexpr std::size_t kFiles = 64;

struct Time {
  double wall = 1e300, core = 1e300; ///< seconds; `core`: that this thread ran
};

double now(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Of several repetitions the fastest: what else runs on the machine only makes them slower. The
/// candidates take turns, so that they see the same clock.
std::vector<Time> fastest(int repeats, const std::vector<std::function<void()>>& candidates) {
  std::vector<Time> best(candidates.size());
  for (int r = 0; r < repeats; ++r)
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const double wall = now(CLOCK_MONOTONIC), core = now(CLOCK_THREAD_CPUTIME_ID);
      candidates[i]();
      best[i].core = std::min(best[i].core, now(CLOCK_THREAD_CPUTIME_ID) - core);
      best[i].wall = std::min(best[i].wall, now(CLOCK_MONOTONIC) - wall);
    }
  return best;
}

void hash_memory(std::size_t total) {
  std::vector<unsigned char> block(16 << 10, 0x5a);
  unsigned char digest[EVP_MAX_MD_SIZE];
  for (std::size_t done = 0; done < total; done += block.size())
    EVP_Digest(block.data(), block.size(), digest, nullptr, EVP_sha256(), nullptr);
}

void write_file(const fs::path& path, std::size_t bytes) {
  std::ofstream out(path, std::ios::binary);
  std::string block(1 << 20, '\0');
  for (std::size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<char>(i * 2654435761U >> 13);
  for (std::size_t done = 0; done < bytes; done += block.size())
    out.write(block.data(), static_cast<std::streamsize>(std::min(block.size(), bytes - done)));
}

void must(const Result<std::string>& digest) {
  if (!digest) throw std::runtime_error(to_text(digest.error()));
}

void hash_pieces(const fs::path& path, std::size_t piece) {
  const auto fd = open_record(path).value();
  std::vector<std::byte> buffer(piece);
  Sha256 sha;
  for (;;) {
    const auto got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    sha.update(std::span(buffer).first(static_cast<std::size_t>(got)));
  }
  (void)sha.hex();
}

int run(const fs::path& folder, std::size_t mebibytes, int repeats, bool pieces) {
  const auto bytes = mebibytes << 20;
  const auto file = folder / "one";
  write_file(file, bytes);
  std::vector<fs::path> many;
  for (std::size_t i = 0; i < kFiles; ++i) {
    many.push_back(folder / fmt::format("part-{}", i));
    write_file(many.back(), bytes / kFiles);
  }
  const auto cores = core_count();
  const auto hash_many = [&](unsigned threads) {
    return [&many, threads] {
      (void)for_each_index(many.size(), threads, [&](std::size_t i) -> Status {
        HEBE_TRY([[maybe_unused]] const auto digest, sha256_of_file(many[i]));
        return {};
      }).value();
    };
  };
  const auto keep_many = [&] {
    for (const auto& path : many) (void)read_record(path, bytes).value();
  };
  const auto t = fastest(repeats, {[&] { hash_memory(bytes); }, [&] { must(sha256_of_file(file)); },
                                   keep_many, hash_many(1), hash_many(cores)});
  const auto rate = [&](double s) { return static_cast<double>(bytes) / s / 1e9; };
  const double ratio = t[0].core / t[1].core;
  fmt::print("one core, seconds that the thread ran:\n");
  fmt::print("  EVP SHA-256 in memory, 16 KiB blocks     {:6.3f} GB/s\n", rate(t[0].core));
  fmt::print(
      "  sha256_of_file, {} MiB in the page cache {:6.3f} GB/s  ratio {:.3f} (demanded {})\n",
      mebibytes, rate(t[1].core), ratio, kDemandedRatio);
  fmt::print("  read_record (keeps the bytes), {} x {} MiB {:5.3f} GB/s  ratio {:.3f}\n", kFiles,
             mebibytes / kFiles, rate(t[2].core), t[0].core / t[2].core);
  fmt::print("{} files, seconds of the clock:\n", kFiles);
  fmt::print("  one core                                 {:6.3f} GB/s\n", rate(t[3].wall));
  fmt::print("  {} cores                                  {:6.3f} GB/s  speed-up {:.2f}\n", cores,
             rate(t[4].wall), t[3].wall / t[4].wall);
  if (pieces)
    for (std::size_t piece = 4 << 10; piece <= (8U << 20); piece *= 2) {
      const auto s =
          fastest(repeats, {[&] { hash_memory(bytes); }, [&] { hash_pieces(file, piece); }});
      fmt::print("pieces of {:5} KiB               {:6.3f} GB/s  ratio {:.3f}\n", piece >> 10,
                 rate(s[1].core), s[0].core / s[1].core);
    }
  return ratio >= kDemandedRatio ? 0 : 1;
}

} // namespace
} // namespace hebe::bench

int main(int argc, char** argv) {
  CLI::App app{"Our rate of hashing files against the processor's rate of hashing memory."};
  std::filesystem::path folder = std::filesystem::temp_directory_path();
  std::size_t mebibytes = 256;
  int repeats = 7;
  bool pieces = false;
  app.add_option("--folder", folder, "where the files are written")->capture_default_str();
  app.add_option("--mebibytes", mebibytes, "size of the file")->check(CLI::Range(64, 1 << 16));
  app.add_option("--repeats", repeats, "the fastest counts")->check(CLI::Range(1, 1000));
  app.add_flag("--pieces", pieces, "also how the rate depends on the size of a read");
  CLI11_PARSE(app, argc, argv);
  const auto own = folder / fmt::format("hebe-hashing-{}", ::getpid());
  std::filesystem::create_directory(own);
  int code = 2;
  try {
    code = hebe::bench::run(own, mebibytes, repeats, pieces);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hebe_hashing: {}\n", e.what());
  }
  std::filesystem::remove_all(own);
  return code;
}
