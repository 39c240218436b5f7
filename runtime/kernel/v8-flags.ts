/** V8 flags for the memory of this process. */
import { setFlagsFromString } from 'node:v8'

/**
 * Turns off allocation-site pretenuring, so that every object starts in the young generation. V8
 * counts for each allocation site how many objects survive a collection, and allocates in the old
 * generation where most do. Under load those are the objects that a request holds while it waits:
 * they are garbage milliseconds later, and then stay, with all that they refer to, until the next
 * full collection.
 *
 *  Applies to all threads of the process from now on. Call it first in the process. Libraries must
 * not call it.
 */
export function beginYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
