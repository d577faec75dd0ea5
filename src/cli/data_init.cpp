// hebe data-init: the data root's folders.
#include "cli/context.hpp"
#include "evidence/data_root.hpp"

namespace hebe::cli {

Command data_init_command() {
  return {"data-init",
          "Create the data root's folders (safe to repeat) and say what is unfinished in it",
          [](CLI::App&, Context& c) {
            return [&c] {
              const evidence::DataRoot root(c.data_root);
              if (!c.dry_run)
                if (const auto made = root.initialise(); !made) return c.refused(made.error());
              Json folders = Json::array(), half = Json::array();
              for (const auto& f : root.folders()) folders.push_back(f.filename().string());
              for (const auto& h : root.unsealed()) half.push_back(h.string());
              if (c.json) {
                c.print_json({{"data_root", root.path().string()},
                              {"folders", folders},
                              {"half_written", half}});
              } else {
                c.print("data root: " + root.path().string());
                for (const auto& h : half)
                  c.print("half-written, never read, may be deleted: " + h.get<std::string>());
              }
              return static_cast<int>(ExitCode::done);
            };
          }};
}

} // namespace hebe::cli
