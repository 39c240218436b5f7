/** The verifier on a thread of the kernel. */
import { wireActor } from '../../runtime/kernel/wiring.js'
import { serveThread } from '../../runtime/kernel/threads/thread-serve.js'
import { verifierActor } from './verifier.js'

serveThread({ placements: () => ({ actors: [wireActor(verifierActor, () => ({}))] }) })
