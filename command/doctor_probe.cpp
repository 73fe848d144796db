// SPDX-License-Identifier: BSL-1.0
#include "command/doctor_probe.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zarrbits::command {

namespace {

// The first 20 bytes of an ELF file: magic, class (32 or 64 bits), byte order, ..., machine.
struct elf_head {
  unsigned char bytes[20] = {};
  bool valid = false;
  unsigned bits() const { return bytes[4] == 1 ? 32 : 64; }
  bool big_endian() const { return bytes[5] == 2; }
  unsigned machine() const { return big_endian() ? bytes[18] * 256u + bytes[19] : bytes[19] * 256u + bytes[18]; }
};

elf_head head_of(const char* path) {
  elf_head h;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return h;
  h.valid = ::read(file, h.bytes, sizeof h.bytes) == static_cast<ssize_t>(sizeof h.bytes) && std::memcmp(h.bytes,
                                                                                                         "\x7f"
                                                                                                         "ELF",
                                                                                                         4) == 0;
  ::close(file);
  return h;
}

std::string machine_name(const elf_head& h) {
  std::string name;
  switch (h.machine()) {
    case 3: name = "x86"; break;
    case 8: name = "MIPS"; break;
    case 20: name = "PowerPC"; break;
    case 21: name = "PowerPC"; break;
    case 22: name = "S/390"; break;
    case 40: name = "ARM"; break;
    case 62: name = "x86-64"; break;
    case 183: name = "AArch64"; break;
    case 243: name = "RISC-V"; break;
    default: name = "machine " + std::to_string(h.machine());
  }
  return name + " (" + std::to_string(h.bits()) + " bits, " + (h.big_endian() ? "big" : "little") + " endian)";
}

// H5Z_class2_t, as far as it is the same in all versions.
struct filter_class {
  int version;
  int id;
  unsigned encoder_present, decoder_present;
  const char* name;
};

// What the child writes into the pipe, before the text of `detail` or `name`.
struct probe_reply {
  char state = 'x';  // l: cannot be loaded, n: no plugin, o: other plugin, f: filter
  int type = 0, version = 0, id = -1;
  char netcdf = 0;
  char zarrbits[20] = "";  // its version
};

void send(int pipe, const probe_reply& a, const char* text) {
  char out[sizeof a + 500];
  std::memcpy(out, &a, sizeof a);
  const std::size_t n = text ? strnlen(text, 500) : 0;
  if (n) std::memcpy(out + sizeof a, text, n);
  if (::write(pipe, out, sizeof a + n) < 0) ::_exit(1);
}

[[noreturn]] void load(const char* path, int pipe) {
  ::alarm(10);
  // what the library prints must not end up in our output
  const int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    ::dup2(nowhere, 0);
    ::dup2(nowhere, 1);
    ::dup2(nowhere, 2);
  }
  probe_reply a;
  const char* text = nullptr;
  void* library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  void *type = nullptr, *info = nullptr;
  if (!library) {
    a.state = 'l';
    text = ::dlerror();
  } else if ((type = ::dlsym(library, "H5PLget_plugin_type")) == nullptr ||
             (info = ::dlsym(library, "H5PLget_plugin_info")) == nullptr) {
    a.state = 'n';
  } else {
    int (*get_type)() = nullptr;
    const void* (*get_info)() = nullptr;
    std::memcpy(&get_type, &type, sizeof type);
    std::memcpy(&get_info, &info, sizeof info);
    a.state = 'o';
    a.type = get_type();
    a.netcdf = ::dlsym(library, "NCZ_get_codec_info") || ::dlsym(library, "NCZ_codec_info_defaults");
    if (void* version = ::dlsym(library, "zarrbits_hdf5_version")) {
      const char* (*get_version)() = nullptr;
      std::memcpy(&get_version, &version, sizeof version);
      if (const char* v = get_version()) std::memcpy(a.zarrbits, v, strnlen(v, sizeof a.zarrbits - 1));
    }
    const auto* c = a.type == 0 ? static_cast<const filter_class*>(get_info()) : nullptr;
    if (c) {
      a.state = 'f';
      a.version = c->version;
      a.id = c->id;
      if (c->version == 1) text = c->name;  // later classes have another order
    }
  }
  send(pipe, a, text);
  ::_exit(0);
}

}  // namespace

probe_result probe(const std::string& path) {
  probe_result r;
  const elf_head file = head_of(path.c_str()), self = head_of("/proc/self/exe");
  if (!file.valid && self.valid) {
    r.kind = probe_result::kind_of::no_library;
    return r;
  }
  if (self.valid && (file.bits() != self.bits() || file.big_endian() != self.big_endian() || file.machine() != self.machine())) {
    r.kind = probe_result::kind_of::other_machine;
    r.detail = "is for " + machine_name(file) + ", and this machine's programs for " + machine_name(self);
    return r;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    r.kind = probe_result::kind_of::cannot_load;
    r.detail = std::strerror(errno);
    return r;
  }
  const pid_t child = ::fork();
  if (child == 0) load(path.c_str(), ends[1]);
  ::close(ends[1]);
  char in[sizeof(probe_reply) + 500];
  std::size_t n = 0;
  for (ssize_t got; child > 0 && n < sizeof in && (got = ::read(ends[0], in + n, sizeof in - n)) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) n += static_cast<std::size_t>(got);
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0) status = 1;
  probe_reply a;
  if (n < sizeof a) {
    r.kind = probe_result::kind_of::crashes;
    r.detail = WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM
                                         ? "did not return within 10 seconds"
                                         : std::string("ended the process: ") + strsignal(WTERMSIG(status))
                                   : "ended the process";
    return r;
  }
  std::memcpy(&a, in, sizeof a);
  const std::string text(in + sizeof a, n - sizeof a);
  r.type = a.type;
  r.class_version = a.version;
  r.id = a.id;
  r.netcdf_codec = a.netcdf != 0;
  r.version.assign(a.zarrbits, strnlen(a.zarrbits, sizeof a.zarrbits));
  switch (a.state) {
    case 'l':
      r.kind = probe_result::kind_of::cannot_load;
      r.detail = text.rfind(path + ": ", 0) == 0 ? text.substr(path.size() + 2) : text;
      break;
    case 'n': r.kind = probe_result::kind_of::no_plugin; break;
    case 'f':
      r.kind = probe_result::kind_of::filter;
      r.name = text;
      break;
    default: r.kind = probe_result::kind_of::other_plugin;
  }
  return r;
}

}  // namespace zarrbits::command
