/** A gateway on uWebSockets in a process of its own: tells its port, ends when it is killed. */
import { openStage } from './stage.js'

const { port } = await openStage({ transport: 'uws' })
process.send?.({ port })
