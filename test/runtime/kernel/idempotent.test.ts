/** What services of tests report of messages that the kernel may send again. */
import test from 'ava'
import { vault, type VaultProtocol } from '../../../actors/vault/vault/protocol.js'
import { defineActor } from '../../../runtime/kernel/actor.js'
import { spawnInline } from '../../../runtime/kernel/inline.js'
import { DatabaseConnection } from '../../../storage/platform/connection.js'
import { appendStatement } from '../../../storage/platform/outbox.js'
import { watchIdempotent } from '../../support/idempotent.js'

test('an idempotent message that appends an event is reported', async (t) => {
  const faults: string[] = []
  watchIdempotent((fault) => faults.push(fault))
  // Without a server: the statement fails after it has been judged.
  const connection = Object.create(DatabaseConnection.prototype) as DatabaseConnection
  const append = async () => {
    await connection.pipeline([appendStatement([])]).catch(() => undefined)
    return { tag: 'unknown_credential' as const }
  }
  const definition = defineActor<VaultProtocol, object>({
    address: vault,
    asks: {},
    mailbox: { capacity: 8, inflightMax: 8 },
    create: () => ({ getVaultCredential: append, revokeVaultCredential: append }) as never,
  })
  const actor = spawnInline(definition, {})
  t.teardown(() => actor.stop())
  await actor.ref.revokeVaultCredential({} as never)
  t.deepEqual(faults, [])
  await actor.ref.getVaultCredential({} as never)
  t.deepEqual(faults, [
    'vault.getVaultCredential may be sent again after a restart, and runs outbox.append',
  ])
})
