// What the CPU and the card tell each other, and graphs of it.
#include <numeric>

#include <gtest/gtest.h>

#include "engine/cycle_graphs.h"
#include "gpu_suite/card.h"
#include "ops/ids.h"
#include "tensor/cuda_graph.h"
#include "tensor/host_link.h"

namespace blockdraft {
namespace {

using test::Card;
using test::OnCard;

using Ids = std::vector<int32_t>;

Ids counted(size_t size, int32_t first) {
  Ids ids(size);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// Around the border of a place, and beyond a page.
const std::vector<Ids>& arrays() {
  static const std::vector<Ids> all{counted(1, 5),     counted(63, 100), counted(64, 200), counted(65, 300), {},
                                    counted(5000, 400)};
  return all;
}

class Link : public testing::Test {
 protected:
  const int32_t* send(const Ids& ids) {
    return static_cast<const int32_t*>(link_.send(ids.data(), ids.size() * sizeof(int32_t)));
  }
  int32_t* receive(Ids& ids) { return static_cast<int32_t*>(link_.receive(ids.data(), ids.size() * sizeof(int32_t))); }
  // Queues that `to`, a place on the card, gets what `from` has.
  static void copy(int32_t* to, const int32_t* from, const Ids& like) {
    Card::device().copy_on_device(to, from, like.size() * sizeof(int32_t), "copy");
  }
  // A round: what is sent comes back.
  void send_back(const Ids& ids, Ids& found) {
    found.assign(ids.size(), -1);
    const int32_t* sent = send(ids);
    copy(receive(found), sent, ids);
  }
  void expect_arrived(const std::vector<const int32_t*>& places) {
    for (size_t i = 0; i < arrays().size(); ++i) {
      EXPECT_EQ(on_.download(places[i], std::ssize(arrays()[i])), arrays()[i]) << "array " << i;
    }
  }

  OnCard on_{1 << 20};
  HostLink link_ = HostLink::create(Card::device(), 64 << 10, 64 << 10).value();
};

TEST_F(Link, WhatIsSentArrives) {
  std::vector<const int32_t*> places;
  ASSERT_TRUE(link_.begin().ok());
  for (const Ids& ids : arrays()) places.push_back(send(ids));
  expect_arrived(places);
}

TEST_F(Link, WhileSendingWaitsNothingIsSent) {
  ASSERT_TRUE(link_.begin().ok());
  const int32_t* before = send(counted(50, 1));
  link_.let_sending_wait();
  const int32_t* waiting = send(counted(50, 2));
  link_.send_no_more();
  const int32_t* after = send(counted(50, 3));
  EXPECT_EQ(on_.download(before, 50), counted(50, 1));
  EXPECT_NE(on_.download(waiting, 50), counted(50, 2));
  EXPECT_EQ(on_.download(after, 50), counted(50, 3));
}

TEST_F(Link, PlacesAreTheSameInEveryRound) {
  std::vector<const void*> first;
  for (int32_t round = 0; round < 3; ++round) {
    ASSERT_TRUE(link_.begin().ok());
    std::vector<const void*> places;
    std::vector<Ids> found(2);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i].assign(70, -1);
      const int32_t* sent = send(counted(70, 1000 * round));
      int32_t* received = receive(found[i]);
      copy(received, sent, found[i]);
      places.insert(places.end(), {sent, received});
    }
    if (round == 0) first = places;
    EXPECT_EQ(places, first);
    ASSERT_TRUE(link_.finish().ok());
    for (const Ids& ids : found) EXPECT_EQ(ids, counted(70, 1000 * round));
  }
}

// The second finish() leaves alone what the first has delivered.
TEST_F(Link, IsWaitedForTwice) {
  Ids first, second;
  ASSERT_TRUE(link_.begin().ok());
  send_back(counted(100, 7), first);
  EXPECT_EQ(first, Ids(100, -1));
  ASSERT_TRUE(link_.finish().ok());
  EXPECT_EQ(first, counted(100, 7));
  first.assign(100, -2);
  send_back(counted(30, 9), second);
  ASSERT_TRUE(link_.finish().ok());
  EXPECT_EQ(first, Ids(100, -2));
  EXPECT_EQ(second, counted(30, 9));
}

// And nothing is delivered later, when the array may be gone.
TEST_F(Link, AnErrorOfTheStreamComesOutOfFinish) {
  Ids lost, found;
  ASSERT_TRUE(link_.begin().ok());
  send_back(counted(10, 1), lost);
  Card::device().note(1, "what failed");
  const Status status = link_.finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::io_error);
  EXPECT_NE(status.error().message.find("what failed"), std::string::npos) << status.error().message;
  ASSERT_TRUE(link_.begin().ok());
  send_back(counted(10, 2), found);
  ASSERT_TRUE(link_.finish().ok());
  EXPECT_EQ(found, counted(10, 2));
  EXPECT_EQ(lost, Ids(10, -1));
}

TEST_F(Link, AGraphRepeatsTheRoundWithOtherContents) {
  CudaDevice& device = Card::device();
  Ids found;
  ASSERT_TRUE(link_.begin().ok());
  send_back(counted(300, 1), found);
  ASSERT_TRUE(link_.finish().ok());
  const size_t bytes = link_.sent_bytes();
  const auto queue = [&](int32_t first) {
    link_.let_sending_wait();
    link_.queue_sending(bytes);
    send_back(counted(300, first), found);
    link_.queue_receiving();
    link_.send_no_more();
  };
  ASSERT_TRUE(link_.begin().ok());
  CudaGraph::begin(device);
  queue(10);
  const CudaGraph graph = CudaGraph::end(device).value();
  ASSERT_TRUE(link_.finish().ok());
  EXPECT_NE(found, counted(300, 10)) << "what was captured must not have run";
  for (const int32_t first : {20, 30}) {
    ASSERT_TRUE(link_.begin().ok());
    device.set_repeats(true);
    queue(first);
    device.set_repeats(false);
    graph.launch(device);
    ASSERT_TRUE(link_.finish().ok());
    EXPECT_EQ(found, counted(300, first));
  }
}

// The second round of a shape is captured; the empty shape never is.
TEST_F(Link, CyclesOfAShapeAreOneGraph) {
  on_.card().link = &link_;
  CycleGraphs graphs;
  Ids found;
  const auto round = [&](const CycleGraphs::Shape& shape, const Ids& ids) {
    ASSERT_TRUE(link_.begin().ok());
    const Status status = graphs.run(on_.card(), shape, [&]() -> Status {
      send_back(ids, found);
      return {};
    });
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_TRUE(link_.finish().ok());
    EXPECT_EQ(found, ids);
  };
  const int64_t captured[] = {0, 1, 1, 1};
  for (int32_t i = 0; i < 4; ++i) {
    round({1, 2}, counted(100, i));
    EXPECT_EQ(graphs.num_captured(), captured[i]);
    round({}, counted(3, i));
  }
  round({2, 2}, counted(200, 5));
  EXPECT_EQ(graphs.num_captured(), 1);
  round({2, 2}, counted(200, 6));
  EXPECT_EQ(graphs.num_captured(), 2);
  round({1, 2}, counted(100, 7));
}

// Copies, fills and kernels alike.
TEST_F(Link, ADeviceThatSkipsQueuesNothing) {
  CudaDevice& device = Card::device();
  ASSERT_TRUE(link_.begin().ok());
  const int32_t* place = send(counted(50, 1));
  ASSERT_TRUE(link_.finish().ok());
  int32_t* other = on_.upload(counted(50, 500));
  Ids host(50, -1);

  device.set_skips(true);
  EXPECT_TRUE(link_.begin().ok());
  EXPECT_EQ(send(counted(50, 2)), place);
  copy(other, place, host);
  device.fill(other, 0, 50 * sizeof(int32_t), "fill");
  device.copy_to_host(host.data(), place, 50 * sizeof(int32_t), "to the CPU");
  map_ids(on_.card(), other, place, nullptr, 50);
  EXPECT_TRUE(device.synchronize().ok());
  device.set_skips(false);

  EXPECT_EQ(host, Ids(50, -1));
  EXPECT_EQ(on_.download(place, 50), counted(50, 1));
  EXPECT_EQ(on_.download(other, 50), counted(50, 500));
}

}  // namespace
}  // namespace blockdraft
