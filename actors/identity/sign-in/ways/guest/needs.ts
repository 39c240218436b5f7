/** Dependencies of the handlers of guests. */
import type { Handler } from '../../../../../runtime/kernel/actor.js'
import type { WayNeeds, WayTools } from '../../limits/limits-of.js'
import type { GuestsProtocol } from './protocol.js'
import type { AnonymousSettings } from './settings.js'

export type GuestsNeeds = WayNeeds & { readonly anonymous: AnonymousSettings }

export type GuestsTools = GuestsNeeds & WayTools

export type GuestHandler<K extends keyof GuestsProtocol> = Handler<GuestsTools, GuestsProtocol, K>
