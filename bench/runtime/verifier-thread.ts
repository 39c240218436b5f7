/** The verifier behind the kernel's thread placement. */
import { furnish } from '../../runtime/kernel/wiring.js'
import { serveThread } from '../../runtime/kernel/threads/thread-serve.js'
import { verifierActor } from './verifier.js'

serveThread({ seats: () => ({ actors: [furnish(verifierActor, () => ({}))] }) })
