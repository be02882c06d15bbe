// The judge's attention on two devices at once: kernels of judge.cu on one, loops on a FakeDevice, the same
// inputs.
#pragma once

#include "support/catch.hpp"
#include "support/fake_device.hpp"
#include "verify/judge_ops.hpp"
#include "verify/seed.hpp"

#include <ptxbench/device.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace ptxbench::testing {

// Relative to the largest: how far `got` is from `expected`.
inline double farthest(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& got,
                       DType dtype) {
  const auto type = static_cast<judge::u32>(dtype);
  const std::size_t count = expected.size() / (judge::type_bits(type) / 8);
  double error = 0, size = 1e-30;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = judge::decode(type, judge::load_element(expected.data(), type, i)),
                 b = judge::decode(type, judge::load_element(got.data(), type, i));
    if (std::isnan(b) != std::isnan(a)) return INFINITY;
    error = std::max(error, std::abs(a - b));
    size = std::max(size, std::abs(a));
  }
  return error / size;
}

// References agree within the rounding of what they are kept in; models, whose every step is rounded alike,
// to the bit.
class AttentionForms {
 public:
  AttentionForms(Device& kernels, JudgeOps& ops) : kernels_(kernels), ops_(ops) {}

  // Both also under the mistake of @p mistaken, a causal mask that is one off with scores scaled by 0.5 instead.
  void compare(const AttentionShape& shape, bool causal, DType dtype, judge::Distribution distribution,
               bool sampled, int mistaken = 0) {
    INFO("B*H=" << shape.all_heads() << " S=" << shape.sequence << " D=" << shape.head_dim
                << (causal ? " causal " : " ") << dtype_name(dtype) << (sampled ? ", some rows" : ""));
    const std::uint64_t elements = shape.elements();
    Two q = draw("Q", shape, dtype, distribution), k = draw("K", shape, dtype, distribution),
        v = draw("V", shape, dtype, distribution), d_o = draw("dO", shape, dtype, distribution),
        o = room(elements * 2), lse = room(shape.rows() * 4);
    AttentionPattern pattern;
    pattern.causal = causal;
    pattern.dtype = dtype;
    const auto both = [&](auto&& work) {
      auto one = work(ops_, 0);
      if (!one) FAIL(one.error().to_string());
      REQUIRE(work(*loops_, 1));
    };
    const auto tensors = [&](int side, const std::vector<Two>& outputs, bool backward) {
      AttentionTensors t;
      t.q = q.at[side], t.k = k.at[side], t.v = v.at[side], t.d_o = d_o.at[side];
      t.o = backward || outputs.empty() ? o.at[side] : outputs[0].at[side];
      t.lse = backward || outputs.empty() ? lse.at[side] : outputs[1].at[side];
      if (backward) t.dq = outputs[0].at[side], t.dk = outputs[1].at[side], t.dv = outputs[2].at[side];
      return t;
    };
    both([&](JudgeOps& ops, int side) {
      return ops.attention_forward(forward_as_inputs(pattern), shape, tensors(side, {}, false));
    });
    check(o, dtype, dtype == DType::bfloat16 ? 4e-3 : 5e-4);
    check(lse, DType::float32, 1e-7);
    // From here on both have the same.
    copy_from_loops(o);
    copy_from_loops(lse);

    for (const bool model : {false, true}) {
      AttentionSpec spec;
      spec.causal = causal;
      spec.input = dtype;
      spec.model = model;
      spec.mask_offset = mistaken;
      if (mistaken != 0) spec.score_scale = 0.5;
      if (model) {
        spec.output = dtype;
        spec.lse = DType::float32;
      }
      Two list;
      std::uint64_t rows = shape.rows();
      if (model && sampled) {
        spec.rows_of_head = std::min(3u, shape.sequence);
        rows = std::uint64_t{shape.all_heads()} * spec.rows_of_head;
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t head = 0; head < shape.all_heads(); ++head)
          for (std::uint32_t i = 0; i < spec.rows_of_head; ++i)
            numbers.push_back(std::min(shape.sequence - spec.rows_of_head, head) +
                              i * (shape.sequence / spec.rows_of_head) % shape.sequence);
        for (std::uint32_t& n : numbers) n = std::min(n, shape.sequence - 1);
        list = room(numbers.size() * 4);
        const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(numbers.data()),
                                                  numbers.size() * 4);
        REQUIRE(kernels_.write(list.at[0], bytes));
        REQUIRE(loop_device_.write(list.at[1], bytes));
      }
      const std::uint64_t width = shape.head_dim;
      const std::vector<Two> forward = {room(dtype_bytes(spec.output, rows * width)),
                                        room(dtype_bytes(spec.lse, rows))};
      const std::vector<Two> gradients = {room(dtype_bytes(spec.output, rows * width)),
                                          room(dtype_bytes(spec.output, rows * width)),
                                          room(dtype_bytes(spec.output, rows * width))};
      const auto with_rows = [&](int side) {
        AttentionSpec s = spec;
        s.rows = list.at[side];
        return s;
      };
      both([&](JudgeOps& ops, int side) {
        return ops.attention_forward(with_rows(side), shape, tensors(side, forward, false));
      });
      both([&](JudgeOps& ops, int side) {
        return ops.attention_backward(with_rows(side), shape, tensors(side, gradients, true));
      });
      INFO((model ? "model" : "reference"));
      check(forward[0], spec.output, model ? 0 : 2e-7);
      check(forward[1], spec.lse, model ? 1.2e-7 : 1e-14);  // the two logarithms
      for (const Two& gradient : gradients) check(gradient, spec.output, model ? 0 : 2e-7);
    }
    for (const DeviceBuffer& buffer : owned_) kernels_.release(buffer);
    owned_.clear();
  }

 private:
  struct Two {
    std::uint64_t at[2] = {0, 0};  // kernels', loops'
    std::uint64_t bytes = 0;
  };
  Two room(std::uint64_t bytes) {
    Two two;
    two.bytes = bytes;
    owned_.push_back(kernels_.allocate(std::max<std::uint64_t>(bytes, 16)).value());
    two.at[0] = owned_.back().address;
    two.at[1] = loop_device_.allocate(std::max<std::uint64_t>(bytes, 16)).value().address;
    REQUIRE(kernels_.fill(two.at[0], 0xff, 1, bytes));
    return two;
  }
  Two draw(const char* name, const AttentionShape& shape, DType dtype, judge::Distribution distribution) {
    const Two two = room(shape.elements() * 2);
    const judge::DrawSpec spec = draw_spec(tensor_key(5, name), dtype,
                                           {shape.all_heads(), shape.sequence, shape.head_dim}, distribution);
    REQUIRE(ops_.draw(spec, two.at[0]));
    REQUIRE(loops_->draw(spec, two.at[1]));
    return two;
  }
  std::vector<std::uint8_t> read(const Two& two, int side) {
    std::vector<std::uint8_t> bytes(two.bytes);
    Device& device = side == 0 ? kernels_ : static_cast<Device&>(loop_device_);
    REQUIRE_FALSE(*device.synchronize(60'000'000'000));
    REQUIRE(device.read(two.at[side], bytes));
    return bytes;
  }
  void copy_from_loops(const Two& two) { REQUIRE(kernels_.write(two.at[0], read(two, 1))); }
  void check(const Two& two, DType dtype, double most) {
    CHECK(farthest(read(two, 1), read(two, 0), dtype) <= most);
  }

  Device& kernels_;
  JudgeOps& ops_;
  FakeDevice loop_device_;
  std::unique_ptr<JudgeOps> loops_ = make_host_judge(loop_device_);
  std::vector<DeviceBuffer> owned_;
};

}  // namespace ptxbench::testing
