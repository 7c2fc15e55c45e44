#include "file_system/target_name.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/node_number.hpp"
#include "file_system/ask_target.hpp"

namespace hocket::file_system {
namespace {

constexpr const char* node = "8c3871fd2d164c03";
constexpr const char* other_node = "1111111111111111";

// Lines as Linux writes them, with hosts and paths of no real site.
constexpr const char* mountinfo =
    R"(22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
31 22 0:40 / /home rw,relatime shared:9 master:2 - nfs4 nas.example.org:/export/home rw,vers=4.2,addr=10.0.0.1
32 22 0:41 / /lustre rw - lustre 10.1.0.1@o2ib,10.1.0.2@o2ib:10.1.0.3@o2ib:/scratch rw,flock,lazystatfs
33 22 254:0 /srv /srv/data rw,relatime - ext4 /dev/vda rw
34 22 8:17 / /with\040a\040blank rw - xfs /dev/sdb1 rw
35 22 0:52 / /beegfs rw - beegfs beegfs_nodev rw,cfgFile=/etc/beegfs/beegfs-client.conf
broken line
36 22 0:60 /@data /data rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@data
37 22 0:61 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c)";

Mount mount_named(std::string type, std::string source, std::string options = "rw") {
  return {40, {0, 77}, "/", "/mnt", std::move(type), std::move(source), std::move(options)};
}
std::string name_of_mount(const Mount& mount, std::string_view evidence = "", std::string_view where = node) {
  return target_name(mount, evidence, where);
}

TEST(Mounts, AreThoseOfTheTable) {
  const auto mounts = parse_mounts(mountinfo);
  ASSERT_EQ(mounts.size(), 8U);
  EXPECT_EQ(mounts[1].id, 31U);
  EXPECT_EQ(mounts[1].device, (DeviceNumber{0, 40}));
  EXPECT_EQ(mounts[1].type, "nfs4") << "tags before the type vary in number";
  EXPECT_EQ(mounts[1].source, "nas.example.org:/export/home");
  EXPECT_EQ(option_of(mounts[1].options, "addr"), "10.0.0.1");
  EXPECT_EQ(option_of(mounts[1].options, "add"), "");
  EXPECT_EQ(mounts[4].point, "/with a blank");
  EXPECT_EQ(mount_of(mounts, {254, 0})->point, "/");
  EXPECT_EQ(mount_of(mounts, {8, 1}), nullptr);
  EXPECT_EQ(mount_with_id(mounts, 36)->type, "btrfs");
  EXPECT_EQ(mount_with_id(mounts, 99), nullptr);
}

TEST(Mounts, OfAPathAreTheDeepestAndTheLatest) {
  const auto mounts = parse_mounts(mountinfo);
  EXPECT_EQ(mount_at(mounts, "/home/alice")->id, 31U);
  EXPECT_EQ(mount_at(mounts, "/home")->id, 31U);
  EXPECT_EQ(mount_at(mounts, "/homes")->id, 37U) << "a name that begins alike is another; the overlay hides the disk";
}

TEST(Settings, AreTheLastOfTheirName) {
  const char* text = "# sysMgmtdHost = no\nsysMgmtdHost=a\n sysMgmtdHost \t= Mgmt1 # here\nsysMgmtdHostx = z\n";
  EXPECT_EQ(setting_in(text, "sysMgmtdHost"), "Mgmt1");
  EXPECT_EQ(setting_in("[global]\nfsid = 1\r\n", "fsid"), "1");
  EXPECT_EQ(setting_in("fsid", "fsid"), "");
}

TEST(TargetName, OfLocalFileSystemsHasTheNode) {
  const auto mounts = parse_mounts(mountinfo);
  EXPECT_EQ(name_of_mount(mounts[0]), "dev:254:0@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mounts[3]), name_of_mount(mounts[0])) << "a bind mount";
  EXPECT_EQ(name_of_mount(mounts[6]), "btrfs:/dev/sda2@8c3871fd2d164c03") << "subvolumes have numbers of their own";
  EXPECT_EQ(name_of_mount(mount_named("zfs", "tank/home/a")), "zfs:tank@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("fuse.bindfs", "/srv/a")), "bindfs:/srv/a@8c3871fd2d164c03");
  for (const char* type : {"tmpfs", "overlay", "virtiofs", "fuse.fuse-overlayfs", "fuse", "fuseblk", "vfat", "9p"})
    EXPECT_EQ(name_of_mount(mount_named(type, "none", "rw,trans=virtio")), "dev:0:77@8c3871fd2d164c03") << type;
}

TEST(TargetName, OfNfsIsTheServerAndItsFileSystem) {
  const Mount home = mount_named("nfs4", "NAS.example.org.:/export/home", "rw,addr=10.0.0.1");
  const Mount alice = mount_named("nfs", "nas.example.org:/export/home/alice/", "rw,addr=10.0.0.2");
  EXPECT_EQ(name_of_mount(home), "nfs:nas.example.org:/export/home");
  EXPECT_EQ(name_of_mount(alice), "nfs:nas.example.org:/export/home/alice");
  const std::string id = "c10a1819257f4d4d:a0d6372e2f44b4e3";
  EXPECT_EQ(name_of_mount(home, id), name_of_mount(alice, id)) << "directories of one file system";
  EXPECT_NE(name_of_mount(home, id), name_of_mount(home, "c10a1819257f4d4d:a0d6372e2f44b4e4"));
  EXPECT_EQ(name_of_mount(home, "7b1b:0"), "nfs:nas.example.org:7b1b");
  EXPECT_EQ(name_of_mount(home, "7b1b:1"), "nfs:nas.example.org:7b1b:1");
  EXPECT_EQ(name_of_mount(home, "0:0"), name_of_mount(home)) << "the server did not say it";
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "[fe80::1]:/e")), "nfs:[fe80::1]:/e");
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "nas:/")), "nfs:nas:/");
}

TEST(TargetName, OfNfsTakesTheIdOfTheDevice) {
  const char* volumes =
      "NV SERVER   PORT DEV          FSID                              FSC\n"
      "v4 c0a87a47  801 0:50         0:0                               no \n"
      "v4 c0a87a47  801 0:51         c10a1819257f4d4d:a0d6372e2f44b4e3 no \n";
  EXPECT_EQ(nfs_volume_in(volumes, {0, 51}), "c10a1819257f4d4d:a0d6372e2f44b4e3");
  EXPECT_EQ(nfs_volume_in(volumes, {0, 5}), "");
  EXPECT_EQ(nfs_volume_in("", {0, 51}), "");
}

TEST(TargetName, OfParallelFileSystemsIsTheirOwn) {
  EXPECT_EQ(name_of_mount(parse_mounts(mountinfo)[2]), "lustre:scratch");
  EXPECT_EQ(name_of_mount(mount_named("lustre", "10.9.9.9@tcp:/scratch/project/a")), "lustre:scratch");
  EXPECT_EQ(name_of_mount(mount_named("gpfs", "/dev/fs1")), "gpfs:fs1");
  EXPECT_EQ(name_of_mount(mount_named("gpfs", "fs1")), "gpfs:fs1");
  EXPECT_EQ(name_of_mount(mount_named("beegfs", "beegfs_nodev"), "Mgmt1"), "beegfs:mgmt1");
  EXPECT_EQ(name_of_mount(mount_named("beegfs", "beegfs_nodev", "rw,sysMgmtdHost=m2"), "m1"), "beegfs:m2");
  EXPECT_EQ(name_of_mount(mount_named("beegfs", "beegfs_nodev")), "dev:0:77@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("gfs2", "/dev/vg/a", "rw,locktable=c1:data")), "gfs2:c1:data");
  EXPECT_EQ(name_of_mount(mount_named("ocfs2", "/dev/vg/a"), "00000000abcdef01"), "ocfs2:00000000abcdef01");
  EXPECT_EQ(name_of_mount(mount_named("pvfs2", "tcp://h:3334/orangefs")), "orangefs:tcp://h:3334/orangefs");
}

TEST(TargetName, OfCephIsTheCluster) {
  // The words of the UUID, as x86 reads them, are 4c3b2a01, 5e4d…: each way of a client to know it gives one name.
  const std::string uuid = "012a3b4c-5d6e-7f80-9112-233445566778";
  std::uint32_t words = 0x4c3b2a01U ^ 0x807f6e5dU ^ 0x34231291U ^ 0x78675645U;
  std::array<char, 20> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", words);
  const std::string expected = std::string("ceph:") + digits.data();
  EXPECT_EQ(name_of_mount(mount_named("ceph", "admin@" + uuid + ".cephfs=/a")), expected);
  EXPECT_EQ(name_of_mount(mount_named("ceph", "10.0.0.1:6789,10.0.0.2:6789:/", "rw,fsid=" + uuid)), expected);
  EXPECT_EQ(name_of_mount(mount_named("fuse.ceph-fuse", "ceph-fuse"), uuid), expected);
  std::snprintf(digits.data(), digits.size(), "00000003%08x", words);
  EXPECT_EQ(name_of_mount(mount_named("ceph", "10.0.0.2:6789:/"), digits.data()), expected) << "Linux 5.16";
  std::snprintf(digits.data(), digits.size(), "%08x%08x", 0x807f6e5dU ^ 0x78675645U, 0x4c3b2a01U ^ 0x34231291U);
  EXPECT_EQ(name_of_mount(mount_named("ceph", "admin@.cephfs=/"), digits.data()), expected) << "before";
  EXPECT_EQ(name_of_mount(mount_named("ceph", "10.0.0.2:6789:/")), "dev:0:77@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("fuse.ceph-fuse", "ceph-fuse"), "no-uuid"), "dev:0:77@8c3871fd2d164c03");
}

TEST(TargetName, OfOtherSharesIsServerAndPath) {
  EXPECT_EQ(name_of_mount(mount_named("fuse.glusterfs", "g1:/vol/sub")), "gluster:g1:/vol");
  EXPECT_EQ(name_of_mount(mount_named("fuse.glusterfs", "G1:vol")), "gluster:g1:/vol");
  EXPECT_EQ(name_of_mount(mount_named("fuse.sshfs", "alice@host:/data")), "sshfs:host:/data");
  EXPECT_EQ(name_of_mount(mount_named("fuse.sshfs", "sshfs#host:/data/")), "sshfs:host:/data");
  EXPECT_EQ(name_of_mount(mount_named("fuse.sshfs", "alice@host:")), "sshfs:alice@host:");
  EXPECT_EQ(name_of_mount(mount_named("cifs", "//NAS/Share/dir")), "cifs://nas/share");
  EXPECT_EQ(name_of_mount(mount_named("9p", "10.0.0.9", "rw,trans=tcp,aname=/x")), "9p:10.0.0.9:/x");
}

TEST(TargetName, OfAServerOnTheNodeItselfHasTheNode) {
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "localhost:/export")), "nfs:localhost:/export@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "127.0.0.1:/"), "1:2"), "nfs:127.0.0.1:1:2@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "[::1]:/e")), "nfs:[::1]:/e@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("cifs", "//127.0.0.1/s")), "cifs://127.0.0.1/s@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("fuse.sshfs", "a@localhost:")), "sshfs:a@localhost:@8c3871fd2d164c03");
  EXPECT_EQ(name_of_mount(mount_named("nfs4", "localhosts:/export")), "nfs:localhosts:/export");
}

TEST(TargetName, OfALongSourceEndsWithAHash) {
  const std::string longest(200, 'x');
  const std::string one = name_of_mount(mount_named("nfs", "host:/" + longest));
  const std::string other = name_of_mount(mount_named("nfs", "host:/" + longest + "y"));
  EXPECT_EQ(one.size(), longest_target_name);
  EXPECT_TRUE(one.starts_with("nfs:host:/xxx")) << one;
  EXPECT_NE(one, other);
  EXPECT_NE(name_of_mount(mount_named("nfs", "host:/a b")), name_of_mount(mount_named("nfs", "host:/a_b")));
  EXPECT_NE(name_of_mount(mount_named("nfs", "host:/a b")), name_of_mount(mount_named("nfs", "host:/a\nb")));
}

TEST(TargetName, IsPrintableShortAndLocalOnesDiffer) {
  const std::vector<std::string> types{
      "nfs",         "nfs4", "lustre", "gpfs",    "beegfs", "ceph",  "fuse.ceph", "fuse.glusterfs",
      "fuse.sshfs",  "cifs", "9p",     "pvfs2",   "gfs2",   "ocfs2", "zfs",       "btrfs",
      "fuse.bindfs", "ext4", "tmpfs",  "overlay", ""};
  std::minstd_rand random(7);
  const auto text = [&](std::size_t most) {
    std::string bytes(random() % (most + 1), ' ');
    const std::string likely = "/:@=,.-a0[]#";
    for (char& c : bytes) c = random() % 4 == 0 ? static_cast<char>(random() % 256) : likely[random() % likely.size()];
    return bytes;
  };
  for (int i = 0; i < 20'000; ++i) {
    Mount mount = mount_named(types[random() % types.size()], text(120), text(60));
    mount.device = {static_cast<unsigned>(random() % 4096), static_cast<unsigned>(random() % (1U << 20))};
    const std::string evidence = text(40);
    const std::string name = name_of_mount(mount, evidence);
    ASSERT_FALSE(name.empty());
    ASSERT_LE(name.size(), longest_target_name);
    ASSERT_EQ(name.find_first_not_of("!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                                     "abcdefghijklmnopqrstuvwxyz{|}~"),
              std::string::npos)
        << name;
    ASSERT_EQ(name, name_of_mount(mount, evidence)) << "one file system has one name";
    ASSERT_TRUE(names_file_system(name)) << name;
    const std::string elsewhere = name_of_mount(mount, evidence, other_node);
    const bool is_local = name.find(node) != std::string::npos || name.starts_with("dev:") ||
                          name.starts_with("zfs:") || name.starts_with("btrfs:") || name.starts_with("bindfs:");
    ASSERT_EQ(name != elsewhere, is_local) << name;
  }
}

TEST(TargetName, OfDevicesOfANodeDiffer) {
  std::set<std::string> names;
  for (unsigned device = 0; device < 100; ++device) names.insert(local_target_name({device / 10, device % 10}, node));
  EXPECT_EQ(names.size(), 100U);
}

TEST(TargetNames, OfTheOperatorComeFirst) {
  const auto mounts = parse_mounts(mountinfo);
  const auto names = parse_target_names("/lustre/project/=big  nfs:10.0.0.1:/export=home /srv/data=disk").value();
  const auto chosen = [&](std::size_t i) { return chosen_name(names, mounts, mounts[i], name_of_mount(mounts[i])); };
  EXPECT_EQ(chosen(2), "big");
  EXPECT_EQ(chosen(0), "disk") << "the path is on the same file system";
  EXPECT_EQ(chosen(1), name_of_mount(mounts[1]));
  EXPECT_EQ(chosen_name(names, mounts, mounts[1], "nfs:10.0.0.1:/export"), "home");
}

TEST(TargetNames, ARefusalSaysWhatIsWrong) {
  EXPECT_EQ(parse_target_names("/a").error().text, "'/a' names no target: write PATH=NAME for each");
  EXPECT_FALSE(parse_target_names("=a").ok());
  EXPECT_FALSE(parse_target_names("/a=").ok());
  EXPECT_FALSE(parse_target_names("/a=dev:8:1").ok());
  EXPECT_FALSE(parse_target_names("/a=/b").ok());
  EXPECT_FALSE(parse_target_names("/a=" + std::string(65, 'x')).ok());
  EXPECT_TRUE(parse_target_names(" ").value().empty());
}

TEST(Device, IsReadAsUsersWriteIt) {
  DeviceNumber device;
  EXPECT_TRUE(read_device("dev:8:17", device));
  EXPECT_EQ(device, (DeviceNumber{8, 17}));
  for (const char* text : {"dev:8", "dev:8:", "dev::1", "dev:8:1@8c3871fd2d164c03", "8:1", "dev:8:1 ", "pool"})
    EXPECT_FALSE(read_device(text, device)) << text;
}

// The following tests ask this node.

std::string local_name_at(const char* path) {
  struct stat status {};
  stat(path, &status);
  return local_target_name({major(status.st_dev), minor(status.st_dev)}, node_number());
}

TEST(AskTarget, KnowsThisNode) {
  ASSERT_EQ(node_number().size(), 16U);
  EXPECT_EQ(target_of_path("/proc"), local_name_at("/proc"));
  EXPECT_EQ(target_of_path("/not/there"), "");
  struct stat status {};
  stat("/proc", &status);
  const std::string device = "dev:" + std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  EXPECT_EQ(target_called(device), target_of_path("/proc"));
  EXPECT_EQ(target_called("dev:4095:77"), "dev:4095:77") << "it is not mounted";
  EXPECT_EQ(target_called("pool"), "pool");
  EXPECT_EQ(target_of_device(makedev(4095, 77), nullptr), local_target_name({4095, 77}, node_number()));
  std::map<std::string, std::string> names;
  for (const auto& [name, mount] : mounted_targets()) names[mount.point] = name;
  EXPECT_EQ(names["/proc"], target_of_path("/proc"));
  EXPECT_EQ(renamed({{"/proc", "processes"}}, target_of_path("/proc")), "processes");
  EXPECT_EQ(renamed({{"/proc", "processes"}}, "pool"), "pool");
  EXPECT_EQ(renamed({{"pool", "other"}}, "pool"), "other");
}

// Returns how many calls of read() this process has made, as the kernel counts them; "" if it does not.
std::string reads_so_far() {
  const std::string counts = whole_file("/proc/self/io", 4096);
  const std::size_t at = counts.find("syscr: ");
  return at == std::string::npos ? "" : counts.substr(at + 7, counts.find('\n', at) - at - 7);
}

TEST(AskTarget, ReadsTheMountsOnceForADevice) {
  if (reads_so_far().empty()) GTEST_SKIP() << "this kernel does not count system calls";
  target_of_path("/proc");
  const auto between = [](auto ask) {
    const long before = std::stol(reads_so_far());
    ask();
    return std::stol(reads_so_far()) - before;
  };
  const long none = between([] {});
  const long known = between([] {
    for (int i = 0; i < 1000; ++i) target_of_path("/proc");
  });
  EXPECT_EQ(known, none);
  EXPECT_GT(between([] { target_of_device(makedev(4001, 1), nullptr); }), none);
}

TEST(AskTarget, KeepsNamesForThreadsAndBeyondItsBound) {
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([] {
      for (unsigned minor_number = 0; minor_number < 300; ++minor_number) {
        const std::string name = local_target_name({4000, minor_number}, node_number());
        EXPECT_EQ(target_of_device(makedev(4000, minor_number), nullptr), name);
        EXPECT_EQ(target_of_device(makedev(4000, minor_number), nullptr), name);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hocket::file_system
