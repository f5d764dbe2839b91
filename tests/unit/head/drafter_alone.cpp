// Linked with every object of the drafter's archive and nothing else of ours.
#include <cstdio>

#include "blockdraft/accept.h"
#include "blockdraft/blockdraft.h"
#include "blockdraft/drafter.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto drafter = blockdraft::Drafter::open(argv[1], {}, {});
  if (drafter) return 1;
  std::printf("%s\n", drafter.error().message.c_str());
  return drafter.error().message.find("embed_tokens") == std::string::npos ? 1 : 0;
}
