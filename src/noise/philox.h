// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; 2011). Like a block
// cipher: each counter gives four random words under a key, so any draw can be computed without the earlier
// ones.
#pragma once

#include <array>
#include <cstdint>

namespace ungrain {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
}

constexpr std::array<std::uint32_t, 4> philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr int rounds = 10;
  constexpr std::uint64_t multiplier_0 = 0xD2511F53;
  constexpr std::uint64_t multiplier_2 = 0xCD9E8D57;
  constexpr std::uint32_t key_step_0 = 0x9E3779B9;  // the golden ratio's digits
  constexpr std::uint32_t key_step_1 = 0xBB67AE85;  // those of sqrt(3) - 1
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product_0 = multiplier_0 * counter[0];
    const std::uint64_t product_2 = multiplier_2 * counter[2];
    counter = {static_cast<std::uint32_t>(product_2 >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_2),
               static_cast<std::uint32_t>(product_0 >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key[0] += key_step_0;
    key[1] += key_step_1;
  }
  return counter;
}

}  // namespace ungrain
