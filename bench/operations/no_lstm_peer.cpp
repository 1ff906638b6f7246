// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "bench/operations/lstm_peer.h"

namespace pointsman::bench {

std::vector<PeerVariant> peer_variants() { return {}; }

std::unique_ptr<LstmPeer> make_lstm_peer(const PeerVariant&, const LstmProblem&, cudaStream_t) {
  throw std::logic_error("built without cuDNN");
}

}  // namespace pointsman::bench
