"""nvdisasm as a witness: asked about single instruction words. Python 3, standard library only."""
import re
import struct
import subprocess
import tempfile

# What nvdisasm is told to disassemble an architecture's words as.
MACHINES = {"sm_90": "SM90a", "sm_100": "SM100a"}

LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+([@A-Z].*?)\s*;", re.M)


def mnemonic_of(disassembly):
    """"UTMALDG.3D" of "@!UPT UTMALDG.3D [UR8], [UR4]"."""
    return re.sub(r"^@!?U?P\w+\s+", "", disassembly).split()[0].rstrip(",")


class Nvdisasm:
    def __init__(self, path):
        self.path, self.asked = path, 0
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        self.version = re.search(r"V([\d.]+)", done.stdout).group(1)

    def disassemble(self, arch, words):
        """The text of each word, without its address; None where nvdisasm refuses the word."""
        out, left = [None] * len(words), list(range(len(words)))
        while left:
            with tempfile.NamedTemporaryFile(suffix=".bin") as file:
                file.write(b"".join(struct.pack("<QQ", *words[i]) for i in left))
                file.flush()
                done = subprocess.run([self.path, "-b", MACHINES[arch], file.name], capture_output=True, text=True)
            if done.returncode == 0:
                for address, text in LINE.findall(done.stdout):
                    out[left[int(address, 16) // 16]] = text
                break
            refused = {int(a, 16) // 16 for a in re.findall(r"at address (0x[0-9a-f]+)", done.stderr)}
            if not refused:
                raise SystemExit(f"nvdisasm: {done.stderr[:1000]}")
            left = [i for at, i in enumerate(left) if at not in refused]
        self.asked += len(words)
        return out

    def names(self, arch, words):
        """The dotted name of each word's operation; None where nvdisasm refuses the word."""
        return [text and mnemonic_of(text) for text in self.disassemble(arch, words)]
