// SPDX-License-Identifier: Apache-2.0
#include "host/run/failure.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <system_error>

#include "engine/backend/backend.h"
#include "engine/cluster/communicator.h"
#include "host/formats/input_file.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
namespace {

Failure describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& e) {
    return {kExitInput, e.what(), e.file(), e.line()};
  } catch (const InputTooLarge& e) {
    return {kExitResource, e.what(), e.file(), 0};
  } catch (const std::invalid_argument& e) {  // a UsageError, or an option that only the engine could judge
    return {kExitUsage, e.what(), "", 0};
  } catch (const OutputRefused& e) {
    return {kExitUsage, e.what(), e.file(), 0};
  } catch (const FileError& e) {
    return {kExitInput, e.what(), e.file(), 0};  // of a model or a checkpoint
  } catch (const DiskError& e) {
    return {kExitResource, e.what(), e.file(), 0};
  } catch (const OutputStopped& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const ClusterError& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const DeviceError& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const CallStopped&) {
    return {kExitInternal, "interrupted before there was a result", "", 0};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error& e) {
    return {kExitResource, e.what(), "", 0};
  } catch (const std::exception& e) {
    return {kExitInternal, std::string("internal error: ") + e.what(), "", 0};
  }
}

}  // namespace

Failure failure_of(const std::exception_ptr& error) {
  Failure failure = describe(error);
  std::string& message = failure.message;
  message.resize(message.find_last_not_of('\n') + 1);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return failure;
}

}  // namespace pointsman
