// SPDX-License-Identifier: Apache-2.0
#include "host/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>

#include "host/formats/input_error.h"
#include "host/formats/input_limit.h"

namespace pointsman {
namespace {

constexpr size_t kInflatedBytes = 64 * 1024;
constexpr size_t kHeadBytes = 4;
constexpr std::string_view kArrays[] = {"\x93NUM", "PK\x03\x04"};  // how .npy and .npz begin
constexpr int kGzipWindow = 15 + 16;                               // the largest window, behind gzip's header

// Of any text format: between two values stands at least one of these.
bool is_separator(char c) {
  return c == ' ' || c == '\n' || c == ',' || c == '\t' || c == ':' || c == '[' || c == '{' || c == '"';
}

void end_stream(z_stream* stream) {
  inflateEnd(stream);
  delete stream;
}

}  // namespace

GzipUnpacker::GzipUnpacker(std::string file) : file_(std::move(file)), stream_(new z_stream(), end_stream) {
  if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) throw std::bad_alloc();
}

void GzipUnpacker::fail(const std::string& message) const { throw InputError(file_, 0, "gzip: " + message); }

void GzipUnpacker::unpack(std::string_view packed, std::string& out) {
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib only reads it
  stream_->avail_in = static_cast<uInt>(packed.size());
  while (stream_->avail_in > 0) inflate_some(out);
}

// A piece, as far as the bytes at hand reach.
void GzipUnpacker::inflate_some(std::string& out) {
  if (is_between_) inflateReset(stream_.get());
  const size_t held = out.size();
  out.resize(held + kInflatedBytes);
  stream_->next_out = reinterpret_cast<Bytef*>(out.data() + held);
  stream_->avail_out = kInflatedBytes;
  const int status = inflate(stream_.get(), Z_SYNC_FLUSH);
  out.resize(held + kInflatedBytes - stream_->avail_out);
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
    fail(std::string("is damaged (") + (stream_->msg != nullptr ? stream_->msg : "no gzip") + ")");
  count(std::string_view(out).substr(held));
  is_between_ = status == Z_STREAM_END;
}

void GzipUnpacker::count(std::string_view bytes) {
  if (head_.size() < kHeadBytes) head_ += bytes.substr(0, kHeadBytes - head_.size());
  held_bytes_ += bytes.size();
  if (std::find(std::begin(kArrays), std::end(kArrays), head_) == std::end(kArrays))
    held_bytes_ +=
        kBytesPerValue * static_cast<uint64_t>(std::count_if(bytes.begin(), bytes.end(), is_separator));
  check_input_size(held_bytes_, file_, "gzip: what it unpacks to takes at least");
}

void GzipUnpacker::end() const {
  if (!is_between_) fail("the file ends within it; was it cut short?");
}

}  // namespace pointsman
