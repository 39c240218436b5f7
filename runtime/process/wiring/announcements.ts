/**
 * Passes changes of this process, and those that other processes announce, to the actors that cache them
 * (docs/concepts/storage.md).
 */
import { signingKeys, SIGNING_KEYS_CHANNEL } from '../../../actors/oauth/signing-keys/protocol.js'
import { TENANTS_CHANNEL, tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { tokens } from '../../../actors/oauth/tokens/protocol.js'
import type { OpenDatabase } from '../../../storage/platform/database.js'
import { TOKEN_STATUS_CHANNEL } from '../../../storage/oauth/token-sessions.js'
import type { System } from '../../kernel/system.js'

/** Subscribes, and returns a function that ends the subscriptions. */
export async function followChanges(
  { listener, forgets }: Pick<OpenDatabase, 'listener' | 'forgets'>,
  system: Pick<System, 'ref'>,
): Promise<() => Promise<void>> {
  const changed = () => system.ref(signingKeys).send('changed', null)
  const tokenStatus = (id: string) => system.ref(tokens).send('invalidate', { ids: [id] })
  const forgetAll = () => system.ref(tokens).send('invalidate', { ids: 'all' })
  const forget = (tenantId: string | null) => system.ref(tenants).send('forget', { tenantId })
  const ends = [
    forgets((ids) => system.ref(tokens).send('invalidate', { ids })),
    await listener.listen(SIGNING_KEYS_CHANNEL, { notified: changed, caughtUp: changed }),
    await listener.listen(TENANTS_CHANNEL, { notified: forget, caughtUp: () => forget(null) }),
    // Announcements that were missed during an outage are read from the database.
    await listener.listen(TOKEN_STATUS_CHANNEL, { notified: tokenStatus, caughtUp: forgetAll }),
  ]
  return async () => {
    for (const end of ends) end()
  }
}
