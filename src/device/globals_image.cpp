// Keeps the globals of loaded modules as they were, on the device, so that restoring them can be queued.
#include <ptxbench/device.hpp>

#include <exception>

namespace ptxbench {
namespace {

class Image final : public GlobalsImage {
 public:
  explicit Image(Device& device) : device_(device) {}
  ~Image() override {
    if (store_.bytes != 0) device_.release(store_);
  }

  Result<void> take(const std::vector<DeviceModule>& modules) {
    std::uint64_t total = 0;
    for (DeviceModule module : modules) {
      PTXBENCH_TRY_ASSIGN(const ModuleInfo info, device_.describe(module));
      // Constants too: a kernel cannot write them by name, but the plan's `globals` and stray stores can.
      for (const GlobalInfo& global : info.globals) {
        PTXBENCH_TRY_ASSIGN(const DeviceBuffer buffer, device_.global(module, global.symbol));
        if (buffer.bytes == 0) continue;
        pieces_.push_back({buffer, total});
        total += (buffer.bytes + 255) / 256 * 256;
      }
    }
    if (total == 0) return {};
    PTXBENCH_TRY_ASSIGN(store_, device_.allocate(total));
    for (const Piece& piece : pieces_)
      PTXBENCH_TRY(device_.copy(store_.address + piece.offset, piece.global.address, piece.global.bytes));
    return {};
  }

  Result<void> restore() override {
    for (const Piece& piece : pieces_)
      PTXBENCH_TRY(device_.copy(piece.global.address, store_.address + piece.offset, piece.global.bytes));
    return {};
  }

 private:
  struct Piece {
    DeviceBuffer global;
    std::uint64_t offset = 0;  // in store_
  };
  Device& device_;
  DeviceBuffer store_;
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::unique_ptr<GlobalsImage>> GlobalsImage::capture(Device& device,
                                                            std::vector<DeviceModule> modules) {
  try {
    auto image = std::make_unique<Image>(device);
    PTXBENCH_TRY(image->take(modules));
    return std::unique_ptr<GlobalsImage>(std::move(image));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::no_memory, std::string("capturing globals: ") + e.what());
  }
}

}  // namespace ptxbench
