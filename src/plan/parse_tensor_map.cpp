// `tensor_maps`: the words of the driver's cuTensorMapEncode functions.
#include "plan/read.hpp"

namespace ptxbench::plan {
namespace {

Result<void> read_list(const json::Cursor& at, std::string_view key, std::size_t most,
                       std::optional<std::vector<Expression>>& out) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, at.get(key));
  if (!found) return {};
  PTXBENCH_TRY_ASSIGN(out, read_expressions(*found, 0, most));
  return {};
}

Result<void> read_choice(const json::Cursor& at, std::string_view key,
                         std::initializer_list<std::string_view> words, int& out) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, at.get(key));
  if (!found) return {};
  PTXBENCH_TRY_ASSIGN(out, read_word(*found, words));
  return {};
}

}  // namespace

Result<TensorMap> read_tensor_map(const json::Cursor& at) {
  // Lists are read with room to spare: that a rank of 6 is too much is the driver's rule, and named as such.
  constexpr std::size_t kMost = 16;
  PTXBENCH_TRY(
      only(at, {"name", "tensor", "dtype", "offset", "dims", "strides", "box", "element_strides",
                "interleave", "swizzle", "l2_promotion", "oob_fill", "mode", "pixel_box_lower_corner",
                "pixel_box_upper_corner", "channels_per_pixel", "pixels_per_column"}));
  TensorMap out;
  out.pointer = at.pointer();
  PTXBENCH_TRY_ASSIGN(const json::Cursor name, at.require("name"));
  PTXBENCH_TRY_ASSIGN(out.name, read_identifier(name));
  PTXBENCH_TRY_ASSIGN(const json::Cursor tensor, at.require("tensor"));
  PTXBENCH_TRY_ASSIGN(out.tensor, read_reference(tensor));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> dtype, at.get("dtype"));
  if (dtype) {
    PTXBENCH_TRY_ASSIGN(out.dtype, read_dtype(*dtype, true));
  }
  PTXBENCH_TRY_ASSIGN(out.offset, read_optional_expression(at, "offset"));
  PTXBENCH_TRY(read_list(at, "dims", kMost, out.dims));
  PTXBENCH_TRY(read_list(at, "strides", kMost, out.strides));
  PTXBENCH_TRY(read_list(at, "element_strides", kMost, out.element_strides));
  // The order of the words is that of CUDA's enumerators.
  PTXBENCH_TRY(read_choice(at, "interleave", {"none", "16B", "32B"}, out.interleave));
  PTXBENCH_TRY(
      read_choice(at, "swizzle",
                  {"none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"},
                  out.swizzle));
  PTXBENCH_TRY(read_choice(at, "l2_promotion", {"none", "64B", "128B", "256B"}, out.l2_promotion));
  PTXBENCH_TRY(read_choice(at, "oob_fill", {"zero", "nan"}, out.oob_fill));
  int mode = 0;
  PTXBENCH_TRY(read_choice(at, "mode", {"tiled", "im2col"}, mode));
  out.im2col = mode == 1;

  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> box, at.get("box"));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> lower, at.get("pixel_box_lower_corner"));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> upper, at.get("pixel_box_upper_corner"));
  PTXBENCH_TRY_ASSIGN(out.channels_per_pixel, read_optional_expression(at, "channels_per_pixel"));
  PTXBENCH_TRY_ASSIGN(out.pixels_per_column, read_optional_expression(at, "pixels_per_column"));
  if (!out.im2col) {
    if (lower || upper || out.channels_per_pixel || out.pixels_per_column)
      return invalid(
          at, "pixel boxes, channels_per_pixel and pixels_per_column go with \"mode\": \"im2col\" only");
    if (!box) return invalid(at, "the member \"box\" is missing");
    PTXBENCH_TRY_ASSIGN(out.box, read_expressions(*box, 1, kMost));
    return out;
  }
  if (box) return invalid(*box, "\"box\" goes with \"mode\": \"tiled\" only");
  if (!lower || !upper || !out.channels_per_pixel || !out.pixels_per_column)
    return invalid(at,
                   "\"mode\": \"im2col\" needs pixel_box_lower_corner, pixel_box_upper_corner, "
                   "channels_per_pixel and pixels_per_column");
  PTXBENCH_TRY_ASSIGN(out.pixel_box_lower, read_expressions(*lower, 1, kMost));
  PTXBENCH_TRY_ASSIGN(out.pixel_box_upper, read_expressions(*upper, 1, kMost));
  return out;
}

}  // namespace ptxbench::plan
