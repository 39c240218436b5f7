/** A kms in memory, for tests and benches. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { Kms } from './kms.js'
import { masterKeys } from './master-keys.js'
import { KEY_BYTES } from './noise.js'

export function memoryKms({ random }: { readonly random: Random }): Kms {
  const keys = masterKeys([{ version: 1, bytes: random.bytes(KEY_BYTES) }], random)
  return {
    wrap: async (context, plaintext) => keys.wrap(context, plaintext),
    unwrap: async (context, wrapped) => keys.unwrap(context, wrapped),
    health: async () => ({ state: 'up', masterKeyIds: keys.ids }),
    close: async () => {},
  }
}
