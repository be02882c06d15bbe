// A program that is no worker and says nothing.
#include <unistd.h>

int main() {
  for (;;) ::pause();
}
