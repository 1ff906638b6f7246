// SPDX-License-Identifier: Apache-2.0
// That engine/backend/cuda/nccl.h says what NCCL's own header says. It is compiled where there is one.
#include <nccl.h>

#include <type_traits>

#include "engine/backend/cuda/nccl.h"

namespace pointsman::cuda {
namespace {

// A parameter or result of NCCL's as it is passed: enumerations are ints, handles are pointers.
template <typename Ours, typename Theirs>
constexpr bool is_passed_as = std::is_same_v<Ours, Theirs> ||
                              (sizeof(Ours) == sizeof(Theirs) &&
                               ((std::is_enum_v<Theirs> && std::is_integral_v<Ours>) ||
                                (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
                                (std::is_same_v<Ours, NcclId> && std::is_same_v<Theirs, ncclUniqueId>)));

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool is_called_as(OurResult (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return is_passed_as<OurResult, TheirResult> && (is_passed_as<Ours, Theirs> && ...);
  } else {
    return false;
  }
}

constexpr Nccl kNone{};
static_assert(is_called_as(kNone.version, decltype(&ncclGetVersion){}));
static_assert(is_called_as(kNone.later_error, decltype(&ncclCommGetAsyncError){}));
static_assert(is_called_as(kNone.get_id, decltype(&ncclGetUniqueId){}));
static_assert(is_called_as(kNone.join, decltype(&ncclCommInitRank){}));
static_assert(is_called_as(kNone.all_gather, decltype(&ncclAllGather){}));
static_assert(is_called_as(kNone.leave, decltype(&ncclCommDestroy){}));
static_assert(is_called_as(kNone.abort, decltype(&ncclCommAbort){}));
static_assert(is_called_as(kNone.error_text, decltype(&ncclGetErrorString){}));
static_assert(static_cast<int>(ncclSuccess) == kNcclSuccess && static_cast<int>(ncclFloat) == kNcclFloat);

}  // namespace
}  // namespace pointsman::cuda
