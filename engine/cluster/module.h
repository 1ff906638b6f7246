// SPDX-License-Identifier: Apache-2.0
// The MPI module: a shared library loaded at run time, so that the program itself links no MPI.
#pragma once

#include <memory>

#include "engine/cluster/communicator.h"

namespace pointsman {

// Both sides pass C++ objects, so they must come from one version of this program and of the compiler.
inline constexpr char kMpiModuleVersion[] = POINTSMAN_VERSION ", compiler " __VERSION__ ", interface 3";

// What the module exports under the name kMpiModuleEntry, as a function without parameters that returns a
// pointer to this.
struct MpiModule {
  const char* version;                      // kMpiModuleVersion of the module, read first
  std::unique_ptr<Communicator> (*join)();  // starts MPI; throws ClusterError
};
inline constexpr char kMpiModuleEntry[] = "pointsman_mpi_module";

}  // namespace pointsman
