/** The verifier behind the kernel's thread placement. */
import { furnish } from '../../runtime/kernel/furnishing.js'
import { serveThread } from '../../runtime/kernel/thread-serve.js'
import { verifierActor } from './verifier.js'

serveThread({ seats: () => ({ actors: [furnish(verifierActor, () => ({}))] }) })
