/** Master keys in memory, for disposable runs. What they wrapped is lost with the process. */
import type { Random } from '../../runtime/kernel/random.js'
import type { Kms } from './kms.js'
import { masterKeys } from './master-keys.js'
import { KEY_BYTES } from './noise.js'

export type EphemeralOptions = {
  readonly random: Random
  /** The 32 bytes that another thread of this process uses. Default: fresh ones. */
  readonly masterKey?: Uint8Array | undefined
}

/** Only where `refuseForeignKeys` (storage/key-custody.ts) has let it pass. */
export function ephemeralKms({ random, masterKey }: EphemeralOptions): Kms {
  const bytes = masterKey ?? random.bytes(KEY_BYTES)
  const keys = masterKeys([{ version: 1, bytes }], random)
  return {
    wrap: async (context, plaintext) => keys.wrap(context, plaintext),
    unwrap: async (context, wrapped) => keys.unwrap(context, wrapped),
    health: async () => ({ state: 'up', masterKeyIds: keys.ids, ephemeral: true }),
    close: async () => {},
  }
}
