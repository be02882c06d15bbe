#include "sass/nv_info.hpp"

#include <string>

namespace ptxbench::sass {
namespace {

// How a record holds its value (EIFMT_...).
enum Format : std::uint8_t { kNone = 1, kByte = 2, kHalf = 3, kSized = 4 };

Error bad(std::string_view section, std::uint64_t at, std::string_view what) {
  return make_error(ErrorCode::parse, "cubin: section " + std::string(section.substr(0, 200)) + ", byte " +
                                          std::to_string(at) + ": " + std::string(what));
}

}  // namespace

Result<std::vector<AttributeRecord>> read_attributes(elf::Bytes bytes, std::string_view section) {
  std::vector<AttributeRecord> records;
  std::uint64_t at = 0;
  while (at < bytes.size()) {
    if (bytes.size() - at < 4) return bad(section, at, "an attribute record is cut off");
    AttributeRecord record;
    record.offset = at;
    const std::uint8_t format = bytes[at];
    record.code = bytes[at + 1];
    record.value = elf::read16(bytes, at + 2);
    at += 4;
    switch (format) {
      case kNone:
      case kHalf:
        break;
      case kByte:
        record.value &= 0xff;
        break;
      case kSized:
        if (record.value > bytes.size() - at) return bad(section, at, "an attribute's payload is cut off");
        record.payload = bytes.subspan(at, record.value);
        at += record.value;
        break;
      default:
        return bad(section, at - 4, "unknown format " + std::to_string(format) + " of an attribute record");
    }
    records.push_back(record);
  }
  return records;
}

Result<void> need_payload(const AttributeRecord& record, std::size_t bytes, std::string_view section) {
  if (record.payload.size() >= bytes) return {};
  return bad(section, record.offset,
             "attribute " + std::to_string(record.code) + " has " + std::to_string(record.payload.size()) +
                 " bytes, needs " + std::to_string(bytes));
}

}  // namespace ptxbench::sass
