/** Signs with the keys of a running service, for tokens that are slow to get over HTTP. */
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { buildRing, type Signer } from '../../../actors/oauth/signing-keys/ring.js'
import { listSigningKeys } from '../../../storage/oauth/signing-keys.js'
import { openKms } from '../../../storage/platform/kms/client.js'
import { createSealer, SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import type { Json } from '../api.js'
import type { TestService } from '../service.js'

type Keeper = Pick<TestService, 'db' | 'kms'>

/** By database: processes of a deployment sign with the same keys. */
const signers = new WeakMap<object, Promise<Signer>>()

/** An access token with these claims. */
export async function accessToken({ db, kms }: Keeper, claims: Json): Promise<string> {
  let signer = signers.get(db)
  if (signer === undefined) {
    signer = signerOf({ db, kms })
    signers.set(db, signer)
  }
  return (await signer).sign('at+jwt', JSON.stringify(claims))
}

async function signerOf({ db: { database }, kms: { environment } }: Keeper): Promise<Signer> {
  const clock = systemClock
  const kms = await openKms({
    socketPath: environment['SVC_KMS__SOCKET_PATH']!,
    serverPublicKeyPath: environment['SVC_KMS__SERVER_PUBLIC_KEY_PATH']!,
    clientPrivateKeyPath: environment['SVC_KMS__CLIENT_PRIVATE_KEY_PATH']!,
    log: silentLogger,
    clock,
  })
  try {
    const sealer = createSealer({ database, kms, random: systemRandom(clock), clock })
    const rows = await database.system((tx) => listSigningKeys(tx, SYSTEM_TENANT_ID))
    const { signers: found } = await buildRing(rows, undefined, sealer, clock.now())
    return found.get('ES256')!
  } finally {
    await kms.close()
  }
}
