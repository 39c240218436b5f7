/** Sends mail in the async plane. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { mail, type MailProtocol } from './protocol.js'
import type { MailWorker } from './worker.js'

export type MailNeeds = { readonly worker: MailWorker }

export const mailActor = defineActor<MailProtocol, MailNeeds>({
  address: mail,
  asks: {},
  mailbox: { capacity: 64, inflightMax: 8 },
  lane: { busy: () => undefined },
  create: ({ worker }, lifecycle) => {
    worker.start(lifecycle)
    return { busy: async () => ({ tag: 'busy', sending: worker.sending }) }
  },
})
