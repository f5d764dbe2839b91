// A project outside the tree: nothing but installed headers and the installed library.
#include <cstdio>
#include <string>

#include <blockdraft/engine.h>
#include <blockdraft/inspect.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto engine = blockdraft::Engine::open({.target = argv[1], .drafter = argv[2]});
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  std::string streamed;
  const auto generation =
      engine->generate({.prompt = "def main():", .max_tokens = 16}, [&](const blockdraft::Piece& piece) {
        streamed += piece.text;
        return true;
      });
  if (!generation || generation->text.empty() || generation->text != streamed) return 1;
  const auto pair = blockdraft::inspect_pair(argv[1], argv[2]);
  return pair && pair->fits() ? 0 : 1;
}
