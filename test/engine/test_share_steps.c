#include "test.h"
void
test_share_steps(void)
{
}
