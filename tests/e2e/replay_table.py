"""The programs that replay is tried on, and what is promised of each.

`docs/concepts/replay.md` shows this table; `test_replay_programs.py` holds every cell of it to what it finds. Write the
page's table anew with `python -m tests.e2e.replay_table`.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["code", "command"]
Promise = Literal["same", "time", "no"]

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "replay.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
WORDS: dict[Promise, str] = {"same": "identical", "time": "differs: it shows the time", "no": "differs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program. `shows` says what of the seed is in its output; where it shows none of it, `seeded` is False."""

    name: str
    shows: str
    text: str
    kind: Kind = "command"
    needs: tuple[str, ...] = ()
    builds: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # (file, source, compiler and its flags)
    rng: Promise = "same"
    full: Promise = "same"
    seeded: bool = True
    heavy: bool = False
    because: str = ""
    stdin: str = ""

    def installed(self) -> bool:
        """Whether this machine has what it needs."""
        compilers = {compiler[0] for _, _, compiler in self.builds}
        return all(shutil.which(name) for name in (*self.needs, *compilers))


C_RANDOM = r"""
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>
int main(void) {
    unsigned char drawn[8], *given = (unsigned char *)getauxval(AT_RANDOM);
    getrandom(drawn, sizeof drawn, 0);
    for (int i = 0; i < 8; i++) printf("%02x%02x", drawn[i], given[i]);
    printf(" %p %d\n", (void *)drawn, getpid());
    return 0;
}
"""
C_TIME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
    struct timeval now;
    struct timespec up;
    srand(time(NULL));
    gettimeofday(&now, NULL);
    clock_gettime(CLOCK_MONOTONIC, &up);
    printf("%d %ld.%06ld %ld.%09ld %ld\n", rand(), now.tv_sec, now.tv_usec, up.tv_sec, up.tv_nsec, (long)clock());
    return 0;
}
"""
CPP_DEVICE = '#include <random>\n#include <iostream>\nint main() { std::random_device d; std::cout << d() << "\\n"; }\n'
RUST = """
use std::collections::HashMap;
fn main() {
    let numbers: HashMap<i32, i32> = (0..20).map(|number| (number, number)).collect();
    println!("{:?}", numbers);
}
"""
GCC = "echo 'int main(void) { return 0; }' > a.c && gcc -v a.c 2>&1 | grep -o '/tmp/cc[A-Za-z0-9]*' | sort -u"
GO = """
package main

import (
	"crypto/rand"
	"fmt"
)

func main() {
	drawn := make([]byte, 8)
	rand.Read(drawn)
	fmt.Printf("%x\\n", drawn)
}
"""
JAVA = """
import java.util.*;

public class Drawn {
    public static void main(String[] args) {
        System.out.println(UUID.randomUUID());
    }
}
"""
PYTHON = "import os, random, tempfile, uuid; print(uuid.uuid4(), random.random(), tempfile.mktemp(), os.getpid())"
HASHES = "print(hash('a'), set('abcdef'), id(object()))"
WARM = """
import os, random, secrets, tempfile, uuid
print(os.urandom(8).hex(), random.random(), secrets.token_hex(4), uuid.uuid4(), tempfile.mktemp(), os.getpid())
print(hash("a"), open("/dev/urandom", "rb").read(4), open("/proc/sys/kernel/random/uuid").read())
"""
WARM_TIME = (
    "import time, uuid; print(time.time(), time.monotonic(), uuid.uuid1()); time.sleep(0.01); print(time.time_ns())"
)
CHILDREN = """
import multiprocessing, os, random
def draw(queue): queue.put((random.random(), os.urandom(4).hex()))
queue = multiprocessing.Queue()
children = [multiprocessing.Process(target=draw, args=(queue,)) for _ in range(4)]
for child in children: child.start()
print(sorted(queue.get() for _ in children))
"""
CHAIN = """
import os
for generation in range(12):
    print(generation, os.urandom(4).hex(), flush=True)
    if os.fork():
        os.wait()
        os._exit(0)
"""
THREADS = """
import os, threading
drawn = []
for _ in range(6):
    thread = threading.Thread(target=lambda: drawn.append(os.urandom(4).hex()))
    thread.start()
    thread.join()
print(drawn)
"""
DATES = "date +%s.%N; sleep 0.05; date +%s.%N"
NODE = 'console.log(Math.random(), crypto.randomUUID(), require("crypto").randomBytes(4).toString("hex"))'
PERL = 'perl -e \'print rand(), " ", join(",", keys %{{map {$_ => 1} 1..9}}), "\\n"\''
SSH = 'ssh-keygen -q -t ed25519 -N "" -C x -f /tmp/k && cat /tmp/k.pub'
DEVICES = (
    "tr -dc a-z </dev/urandom | head -c 12; cat /dev/urandom | tr -dc a-z | head -c 12; od -An -N4 -tx1 /dev/random"
)
KERNEL_FILES = (
    "cat /proc/sys/kernel/random/uuid /proc/sys/kernel/random/uuid /proc/sys/kernel/random/boot_id /etc/machine-id"
)
DD = "dd if=/dev/urandom bs=1M count=2 2>/dev/null | sha256sum"
PIPELINE = "for i in 1 2 3 4 5 6; do (openssl rand -hex 4 > /tmp/$i) & done; wait; cat /tmp/[1-6]"
GIT = (
    "git init -q /tmp/r && cd /tmp/r && "
    "git -c user.name=a -c user.email=b commit -q --allow-empty -m x && git log --format=%H"
)


def _python3(code: str) -> str:
    return f"python3 - <<'END'\n{code}\nEND"


PROGRAMS = (
    Program(
        name="python, warm", shows="random, uuid, secrets, tempfile, pid, str hashes, devices", text=WARM, kind="code"
    ),
    Program(name="python, warm: time", shows="time, uuid1", text=WARM_TIME, kind="code", rng="time"),
    Program(name="python, cold", shows="random, uuid, tempfile, pid", text=_python3(PYTHON)),
    Program(name="python, cold: hashes", shows="str hashes, set order, id()", text=_python3(HASHES)),
    Program(name="python multiprocessing", shows="four children at once", text=_python3(CHILDREN), heavy=True),
    Program(name="python, a chain of forks", shows="twelve generations", text=_python3(CHAIN)),
    Program(name="python threads", shows="draws of threads, one after the other", text=_python3(THREADS)),
    Program(name="node", shows="Math.random, crypto", text=f"node -e '{NODE}'", needs=("node",), heavy=True),
    Program(
        name="node: time",
        shows="Date.now",
        text="node -e 'console.log(Date.now())'",
        needs=("node",),
        rng="time",
        seeded=False,
        heavy=True,
    ),
    Program(name="openssl rand", shows="its DRBG", text="openssl rand -hex 8", needs=("openssl",)),
    Program(name="openssl genrsa", shows="a key", text="openssl genrsa 512 2>/dev/null", needs=("openssl",)),
    Program(name="six openssl at once", shows="background jobs of a shell", text=PIPELINE, needs=("openssl",)),
    Program(name="ssh-keygen", shows="a key", text=SSH, needs=("ssh-keygen",)),
    Program(name="bash $SRANDOM", shows="getrandom", text="bash -c 'echo $SRANDOM $$'", needs=("bash",)),
    Program(
        name="bash $RANDOM",
        shows="seeded by time",
        text="bash -c 'echo $RANDOM'",
        needs=("bash",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="dash, head, od",
        shows="/dev/urandom",
        text="dash -c 'head -c 8 /dev/urandom | od -An -tx1; echo $$'",
        needs=("dash",),
    ),
    Program(name="tr and cat on /dev/urandom", shows="readers that take more than they use", text=DEVICES),
    Program(name="dd", shows="large reads of /dev/urandom", text=DD),
    Program(name="files of the kernel", shows="uuid, boot_id, machine-id", text=KERNEL_FILES),
    Program(name="perl", shows="rand, hash order", text=PERL, needs=("perl",)),
    Program(
        name="mawk",
        shows="rand, seeded by time",
        text="mawk 'BEGIN { srand(); print rand() }'",
        needs=("mawk",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="gawk",
        shows="srand() by time",
        text="gawk 'BEGIN { srand(); print rand(), systime() }'",
        needs=("gawk",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="ruby",
        shows="SecureRandom, String#hash",
        text="ruby -rsecurerandom -e 'puts SecureRandom.hex(4), \"a\".hash'",
        needs=("ruby",),
        heavy=True,
    ),
    Program(
        name="ruby rand",
        shows="seeded by time too",
        text="ruby -e 'puts rand'",
        needs=("ruby",),
        rng="time",
        heavy=True,
    ),
    Program(
        name="php",
        shows="mt_rand, random_bytes",
        text='php -r \'echo mt_rand(), " ", bin2hex(random_bytes(4)), "\\n";\'',
        needs=("php",),
    ),
    Program(
        name="php: time",
        shows="uniqid, lcg_value",
        text='php -r \'echo uniqid(), " ", lcg_value(), "\\n";\'',
        needs=("php",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="lua",
        shows="math.random: time and addresses",
        text="lua5.4 -e 'print(math.random(), {})'",
        needs=("lua5.4",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="tclsh",
        shows="rand, seeded by time",
        text="echo 'puts [expr rand()]' | tclsh",
        needs=("tclsh",),
        rng="time",
        seeded=False,
    ),
    Program(
        name="sqlite3",
        shows="random, randomblob",
        text="sqlite3 :memory: 'select random(), hex(randomblob(4))'",
        needs=("sqlite3",),
    ),
    Program(
        name="sort -R, shuf, mktemp",
        shows="coreutils",
        text="seq 20 | sort -R | tr '\\n' ' '; shuf -i 1-1000 -n 5; mktemp -u",
    ),
    Program(name="uuidgen", shows="libuuid mixes the time in", text="uuidgen", needs=("uuidgen",), rng="time"),
    Program(
        name="busybox, static",
        shows="mktemp, /dev/urandom",
        text="busybox mktemp -u; busybox head -c 8 /dev/urandom | busybox od -t x1",
        needs=("busybox",),
    ),
    Program(
        name="C", shows="getrandom, AT_RANDOM, stack address", text="./c", builds=(("c", C_RANDOM, ("gcc", "-xc")),)
    ),
    Program(name="C, static", shows="the same", text="./c", builds=(("c", C_RANDOM, ("gcc", "-static", "-xc")),)),
    Program(
        name="C: time",
        shows="srand(time), gettimeofday, clock()",
        text="./c",
        builds=(("c", C_TIME, ("gcc", "-xc")),),
        rng="time",
        seeded=False,
    ),
    Program(
        name="C, static: time",
        shows="the same",
        text="./c",
        builds=(("c", C_TIME, ("gcc", "-static", "-xc")),),
        rng="time",
        seeded=False,
    ),
    Program(name="rust", shows="the order of a HashMap", text="./r", builds=(("r", RUST, ("rustc", "-O")),)),
    Program(name="go", shows="crypto/rand", text="./g", builds=(("g", GO, ("go",)),)),
    Program(
        name="java",
        shows="UUID, by SecureRandom",
        text="cat > Drawn.java && java -Xshare:auto Drawn.java",
        stdin=JAVA,
        needs=("java", "javac"),
        heavy=True,
    ),
    Program(name="date, sleep, date", shows="the clock of three processes", text=DATES, rng="time", seeded=False),
    Program(name="git commit", shows="a commit's time", text=GIT, needs=("git",), rng="time", seeded=False),
    Program(name="gcc", shows="names of its temporary files", text=GCC, needs=("gcc",), rng="time", seeded=False),
    Program(
        name="gpg --gen-random",
        shows="libgcrypt, with RDRAND and RDTSC",
        text="gpg --gen-random --armor 1 8",
        needs=("gpg",),
        rng="no",
        full="no",
        seeded=False,
        because="instructions of the processor, which nothing can stop",
    ),
    Program(
        name="C++ std::random_device",
        shows="RDRAND",
        text="./d",
        builds=(("d", CPP_DEVICE, ("g++", "-xc++")),),
        rng="no",
        full="no",
        seeded=False,
        because="an instruction of the processor, which nothing can stop",
    ),
)


def table() -> str:
    """The table of the page."""
    lines = ["| program | what it shows | `rng` | `full` |", "|---|---|---|---|"]
    for program in PROGRAMS:
        cells = [
            WORDS[promise] + (f": {program.because}" if promise == "no" else "")
            for promise in (program.rng, program.full)
        ]
        lines.append(f"| {program.name} | {program.shows} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def page_with_table(page: str) -> str:
    """A page with its table written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
