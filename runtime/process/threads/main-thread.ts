/**
 * What the main thread answers to the other gateway threads of its process, besides the actors that run there: the
 * metrics of the process and the mail of a development service.
 */
import type { CaughtMail, CaughtMessage } from '../../../actors/operations/mail/caught-mail.js'
import { defineActor } from '../../kernel/actor.js'
import type { Metrics } from '../../kernel/metrics/metrics.js'
import { address, type Ask } from '../../kernel/protocol.js'

export type MainThreadProtocol = {
  /** All metrics of the process, in the Prometheus text format. */
  metrics: Ask<null, { readonly tag: 'metrics'; readonly text: string }>
  /** The caught mail, the latest first. */
  mails: Ask<null, { readonly tag: 'mails'; readonly mails: readonly CaughtMessage[] }>
}

export const mainThread = address<MainThreadProtocol>('main-thread', {
  idempotent: ['metrics', 'mails'],
})

type MainThreadNeeds = {
  readonly metrics: Metrics
  /** Absent: no mail is kept. */
  readonly caughtMail: CaughtMail | undefined
}

export const mainThreadActor = defineActor<MainThreadProtocol, MainThreadNeeds>({
  address: mainThread,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  create: ({ metrics, caughtMail }) => ({
    metrics: async () => ({ tag: 'metrics', text: await metrics.exposition() }),
    mails: async () => ({ tag: 'mails', mails: caughtMail?.list() ?? [] }),
  }),
})
