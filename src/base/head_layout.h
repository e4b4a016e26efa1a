// HeadLayout: the shape of an attention layer, the type that everything is written against. No code
// may assume d_qk == d_v, n_q_heads * d_qk == d_model or n_q_heads == n_kv_heads.
#ifndef HEADLIGHT_BASE_HEAD_LAYOUT_H_
#define HEADLIGHT_BASE_HEAD_LAYOUT_H_

#include <cstddef>

namespace headlight {

struct HeadLayout {
  size_t n_q_heads = 0;
  size_t n_kv_heads =
      0;            // divides n_q_heads; query head h reads KV head h / (n_q_heads / n_kv_heads)
  size_t d_qk = 0;  // width of a query and of a key, in elements
  size_t d_v = 0;   // width of a value, in elements
  // A value is the first d_v elements of its key (latent attention): a cache may store it once.
  bool values_in_keys = false;

  constexpr size_t n_q_per_kv() const { return n_q_heads / n_kv_heads; }
  constexpr size_t q_width() const { return n_q_heads * d_qk; }
  constexpr size_t k_width() const { return n_kv_heads * d_qk; }
  constexpr size_t v_width() const { return n_kv_heads * d_v; }
  constexpr size_t out_width() const { return n_q_heads * d_v; }
  constexpr bool operator==(const HeadLayout&) const = default;
};

}  // namespace headlight

#endif  // HEADLIGHT_BASE_HEAD_LAYOUT_H_
