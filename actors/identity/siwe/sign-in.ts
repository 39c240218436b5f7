/** A linked Ethereum account as the first factor. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { useWallet } from '../../../storage/identity/ways/wallets.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { quotaAddress } from '../../domain/quota-address.js'
import { recordSignInFailure } from '../sessions/events.js'
import { flowPage, onward, type Progress, progressIn } from '../sign-in/flow.js'
import { openSessionInFlow } from '../sign-in/login-challenges.js'
import type { FlowStep } from '../sign-in/protocol.js'
import type { SiweMessages } from './messages.js'
import type { SiweTools } from './needs.js'
import type { SiweProtocol } from './protocol.js'

/** RFC 8176: proof of possession of a key, of unknown storage. */
const AMR = ['pop']

type Reply<K extends keyof SiweProtocol> = Promise<SiweProtocol[K]['reply']>

export function siweSignIn(tools: SiweTools, { compose, verify }: SiweMessages) {
  const { database, clock, lockout } = tools
  const bound = ({ flow }: Progress) =>
    ({ tenantId: flow.tenantId, purpose: 'sign_in', sessionId: null }) as const

  return {
    async showEthereumSignIn(
      { flow, visitor }: FlowStep,
      context: MessageContext,
    ): Reply<'showEthereumSignIn'> {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (progress.step !== 'login' && progress.session?.pending !== true) return onward(progress)
      return { tag: 'page', ...flowPage(flow, progress.flow) }
    },

    async composeSignInMessage(
      { flow, visitor, ...order }: SiweProtocol['composeSignInMessage']['message'],
      context: MessageContext,
    ): Reply<'composeSignInMessage'> {
      const progress = await progressIn(tools, flow, visitor.token, context)
      return 'tag' in progress ? progress : compose(bound(progress), order, context)
    },

    async signInWithEthereum(
      { flow: token, visitor, ...signed }: SiweProtocol['signInWithEthereum']['message'],
      context: MessageContext,
    ): Reply<'signInWithEthereum'> {
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const shown = flowPage(token, flow)
      const name = `siwe:${quotaAddress(visitor.address)}`
      const attempted = { name, address: visitor.address, signal: context.signal }
      try {
        const judged = await lockout.attempt(attempted, async (attempt) => {
          const account = await verify(bound(progress), signed, context)
          const found =
            account === null
              ? undefined
              : await database.system(
                  (tx) => useWallet(tx, tenantId, account, clock.now()),
                  context,
                )
          if (found !== undefined) {
            await attempt.succeeded()
            return { tag: 'found', found } as const
          }
          const locked = await attempt.failed()
          const { address } = visitor
          await recordSignInFailure(
            tools,
            { tenantId, factor: 'siwe', sub: null, locked, address },
            context,
          )
          return { tag: account === null ? 'wrong' : 'unlinked' } as const
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        const { outcome } = judged
        if (outcome.tag !== 'found') return { ...shown, ...outcome }
        const { found } = outcome
        return await openSessionInFlow(tools, { flow, token, found, amr: AMR, visitor }, context)
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
        throw error
      }
    },
  }
}
