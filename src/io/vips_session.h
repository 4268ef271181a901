// libvips as this program uses it: started once, silent, one thread an encoder, no cache.
#pragma once

#include <vips/vips.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ungrain::io {

// Any thread may call it, any number of times.
void start_vips();

bool has_vips_operation(std::string_view nickname);
// "jpegload" for "VipsForeignLoadJpegFile".
std::string vips_nickname(const char* type_name);

// libvips' messages since the last call, in one line and without its own names.
std::string take_vips_message();

// Copies a metadata field; does nothing where `from` lacks it.
void copy_vips_field(VipsImage* from, VipsImage* to, const char* field);

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
template <class Object>
using VipsPointer = std::unique_ptr<Object, Unref>;

// An operation with its properties, run by run().
class VipsCall {
 public:
  explicit VipsCall(std::string_view operation);

  template <class Value>
  VipsCall& set(const char* property, Value value) {
    g_object_set(operation_.get(), property, value, nullptr);
    return *this;
  }
  // Sets a property if the operation has it: properties differ within a family of operations and between
  // versions of libvips.
  template <class Value>
  VipsCall& set_if_there(const char* property, Value value) {
    if (has(property)) set(property, value);
    return *this;
  }
  bool has(const char* property) const;

  bool run();  // false: take_vips_message() says why
  struct BlobUnref {
    void operator()(VipsBlob* blob) const { vips_area_unref(VIPS_AREA(blob)); }
  };
  using Blob = std::unique_ptr<VipsBlob, BlobUnref>;
  Blob buffer() const;                    // "buffer", after run(); null where there is none
  VipsPointer<VipsImage> output() const;  // "out", after run()

 private:
  VipsPointer<VipsOperation> operation_;
};

}  // namespace ungrain::io
