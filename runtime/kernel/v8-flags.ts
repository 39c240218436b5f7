/** What V8 is told about the memory of this process. */
import { setFlagsFromString } from 'node:v8'

/**
 * Has everything begin its life in the young generation. V8 counts, for every place in the code that
 * makes objects, how many of them outlive a collection, and where most do it makes them old from then
 * on. Under load that is what a request holds while it waits: dead a few milliseconds later, it stays
 * until the next collection of everything, and with it all that it refers to.
 *
 * For all threads of the process, from now on: for its first lines, and not for libraries.
 */
export function beginYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
