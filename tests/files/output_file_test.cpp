#include "nihao/files/output_file.hpp"

#include <doctest/doctest.h>

#include "support/data.hpp"
#include "support/temp_folder.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

using namespace nihao;

namespace {

Expected<void> write(const std::string& path, std::string_view text) {
  NIHAO_TRY(OutputFile out, OutputFile::create(path));
  NIHAO_CHECK(out.write(std::as_bytes(std::span(text))));
  return std::move(out).commit();
}

void write_plainly(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

std::size_t files_in(const test::TempFolder& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.root())) ++count;
  return count;
}

// What a reader gets of a FIFO that `path` leads to while `text` is written to `path`.
std::string through_fifo(const std::string& fifo, const std::string& path, std::string_view text) {
  std::string got;
  std::thread reader([&] { got = test::read_text(fifo); });
  const auto done = write(path, text);
  reader.join();
  CHECK(done.has_value());
  return got;
}

}  // namespace

TEST_CASE("a file has its content when it is committed, and before that what it had") {
  const test::TempFolder folder;
  const std::string path = folder.path("f");
  REQUIRE(write(path, "first").has_value());
  CHECK(test::read_text(path) == "first");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  {
    auto out = OutputFile::create(path);
    REQUIRE(out.has_value());
    REQUIRE(out->write(std::as_bytes(std::span(std::string_view("half")))).has_value());
    OutputFile moved = *std::move(out);
    CHECK(moved.size() == 4);
    CHECK(test::read_text(path) == "first");
  }
  CHECK(test::read_text(path) == "first");
  CHECK(files_in(folder) == 1);
  REQUIRE(write(path, "second").has_value());
  CHECK(test::read_text(path) == "second");
  CHECK(std::filesystem::status(path).permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a temporary name that is taken is left alone") {
  const test::TempFolder folder;
  write_plainly(folder.path("f.part"), "somebody's");
  std::filesystem::create_symlink(folder.path("elsewhere"), folder.path("f.part1"));
  REQUIRE(write(folder.path("f"), "mine").has_value());
  CHECK(test::read_text(folder.path("f")) == "mine");
  CHECK(test::read_text(folder.path("f.part")) == "somebody's");
  CHECK(std::filesystem::is_symlink(folder.path("f.part1")));
  CHECK_FALSE(std::filesystem::exists(folder.path("elsewhere")));
  CHECK(files_in(folder) == 3);
}

TEST_CASE("symbolic links are followed: the file at their end is replaced, and they stay") {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder.path("there"));
  write_plainly(folder.path("there/file"), "old");
  std::filesystem::create_symlink("there/second", folder.path("first"));  // relative to its own folder
  std::filesystem::create_symlink("file", folder.path("there/second"));
  std::filesystem::create_symlink(folder.path("there/new"), folder.path("absolute"));  // to a file that is not there yet
  REQUIRE(write(folder.path("first"), "new").has_value());
  REQUIRE(write(folder.path("absolute"), "made").has_value());
  for (const char* link : {"first", "there/second", "absolute"}) CHECK(std::filesystem::is_symlink(folder.path(link)));
  CHECK(test::read_text(folder.path("there/file")) == "new");
  CHECK(test::read_text(folder.path("there/new")) == "made");
  CHECK(files_in(folder) == 3);

  std::filesystem::create_symlink(folder.path("loop"), folder.path("loop"));
  const auto loop = write(folder.path("loop"), "x");
  REQUIRE_FALSE(loop.has_value());
  CHECK(loop.error().code == ErrorCode::io);
  CHECK(loop.error().where == folder.path("loop"));
  CHECK(std::filesystem::is_symlink(folder.path("loop")));
}

TEST_CASE("a FIFO is written into, also through a link, and is a FIFO afterwards") {
  const test::TempFolder folder;
  const std::string fifo = folder.path("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::filesystem::create_symlink("fifo", folder.path("link"));
  for (const std::string& path : {fifo, folder.path("link")}) {
    CHECK(through_fifo(fifo, path, "through") == "through");
    CHECK(std::filesystem::is_fifo(fifo));
  }
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  CHECK(files_in(folder) == 2);
}

TEST_CASE("a device is written and not replaced, and a full one is an error that names it") {
  const test::TempFolder folder;
  if (!std::filesystem::is_character_file("/dev/full")) NIHAO_SKIP("/dev/full");
  // Root can replace the machine's own devices: nothing aims at them unless a FIFO behind a link has survived.
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  std::filesystem::create_symlink(folder.path("fifo"), folder.path("link"));
  REQUIRE(through_fifo(folder.path("fifo"), folder.path("link"), "safe") == "safe");
  REQUIRE(std::filesystem::is_fifo(folder.path("fifo")));
  REQUIRE(files_in(folder) == 2);
  std::filesystem::create_symlink("/dev/full", folder.path("full"));
  std::filesystem::create_symlink("/dev/null", folder.path("null"));
  CHECK(write(folder.path("null"), "gone").has_value());
  for (const std::size_t size : {std::size_t{5}, std::size_t{1} << 20}) {  // of less than a buffer the last write fails
    const auto done = write(folder.path("full"), std::string(size, 'x'));
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().message() == folder.path("full") + ": No space left on device");
  }
  CHECK(std::filesystem::is_character_file("/dev/full"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(files_in(folder) == 4);
}

TEST_CASE("what cannot be written is an error that names it") {
  const test::TempFolder folder;
  write_plainly(folder.path("file"), "x");
  for (const std::string& path : {folder.root().string(), folder.path("no/such/folder"), folder.path("file/below")}) {
    CAPTURE(path);
    const auto out = OutputFile::create(path);
    REQUIRE_FALSE(out.has_value());
    CHECK(out.error().code == ErrorCode::io);
    CHECK(out.error().where == path);
  }
  CHECK(OutputFile::create("").error().what == "the name of the file is empty");
  CHECK(MappedFile::open("").error().what == "the name of the file is empty");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("to map a FIFO or a folder is an error, and nobody waits for somebody who writes") {
  const test::TempFolder folder;
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  CHECK(MappedFile::open(folder.path("fifo")).error().message() == folder.path("fifo") + ": not a regular file");
  CHECK(MappedFile::open(folder.root().string()).error().what == "a folder, not a file");
}
