/** The response to a page or form whose sign-in has ended, or that was opened without one. */
import type { FlowUnknown } from '../../actors/identity/sign-in/protocol.js'
import { unknownFlowPage } from '../pages/identity/login.js'
import { choice, page, seeOther } from '../route.js'

export const unknownFlow = choice(({ isAbsent }: FlowUnknown) => (isAbsent ? 'absent' : 'ended'), {
  ended: page(400, unknownFlowPage),
  // Opened by its address, as from a bookmark: the sign-in begins here.
  absent: seeOther(() => ({ location: '/auth/login' })),
})
