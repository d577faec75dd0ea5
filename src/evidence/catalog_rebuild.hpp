// How a catalog comes into its place. In: a data root; out: the lock of those who change its
// catalog, and the file that a rebuild writes. Invariant: a file of a process that died is told
// from one of a process that lives by its lock, not by its number.
#pragma once

#include "core/files.hpp"
#include "core/parallel.hpp"
#include "evidence/data_root.hpp"

namespace hebe::evidence {

/// Held by whoever changes the catalog under its own name. Waits.
class CatalogLock {
public:
  [[nodiscard]] static Result<CatalogLock> acquire(const DataRoot& root);
  /// Shared, while a reader begins. Holds nothing where there is no lock file that may be read:
  /// then nobody can change the catalog either, or somebody changed it by other means.
  [[nodiscard]] static CatalogLock for_reading(const DataRoot& root);

private:
  FileDescriptor fd_;
};

/// <root>/catalog.sqlite.<pid>.tmp, locked while its writer lives; removed unless put in place.
class CatalogAside {
public:
  /// Removes those of dead writers first.
  [[nodiscard]] static Result<CatalogAside> make(const DataRoot& root);
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Synced, renamed to `file`, the root synced. The database must be closed.
  [[nodiscard]] Status put_in_place(const std::filesystem::path& file);

  CatalogAside(CatalogAside&& o) noexcept
      : path_(std::exchange(o.path_, {})), fd_(std::move(o.fd_)) {}
  CatalogAside& operator=(CatalogAside&&) = delete;
  ~CatalogAside();

private:
  CatalogAside() = default;
  std::filesystem::path path_; ///< empty: it is in its place
  FileDescriptor fd_;
};

} // namespace hebe::evidence
