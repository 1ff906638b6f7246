// SPDX-License-Identifier: Apache-2.0
#include "bench/operations/lstm_peer.h"

void pointsman::bench::bench_lstm_peers(const DeviceNetwork&, const LstmAnswer&) {
  Json row = row_of("lstm_keep", "cudnn", 0, 0);
  row["skipped"] = "no cuDNN where this was built";
  print_row(row);
}
