// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/problem/instance.h"
#include "host/files/output_file.h"
#include "host/files/read_instances.h"

namespace pointsman {

// By the suffix: .tsp .npy .npz .json .ndjson .jsonl .txt .kp; nothing for any other.
std::optional<InputFormat> instance_format_of(const std::string& path);

// A file that read_instances() reads back to the same instances. Throws OutputRefused when the format cannot
// hold them: .npy one size (and no capacity: it is told when reading), .npz one problem and one size, TSPLIB
// and KnapSack text one instance. The .npy bytes are those of numpy.save for a float64 array (B,n,2). TSPLIB
// has no unrounded metric, so an instance with Metric::kEuclidean is written as EUC_2D with its coordinates
// times 1,000,000.
std::string format_instances(InputFormat format, const InstanceBatch& instances);

}  // namespace pointsman
