/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for':
    'Acceda per vedere il Suo account, oppure legga come collegare un’applicazione o un agente.',
  'home.workspace': 'Identificatore dello spazio di lavoro',
  'home.console': 'Apri la console',
  'home.mail': 'Email di questo servizio di sviluppo',
  'home.agents': 'Cominci qui se è un agente',
  'home.overview': 'Panoramica per modelli linguistici',
  'home.mcp': 'Server MCP, senza credenziali',

  'error.home': 'Vai alla pagina iniziale',

  'register.title': 'Crei il Suo account',
  'register.lead':
    'Crei un account presso {tenant}. Le inviamo via email un link per confermare il Suo indirizzo.',
  'register.submit': 'Invia il link',
  'register.login': 'Ha già un account? Acceda',
  'register.offer': 'Non ha ancora un account? Ne crei uno',
  'register.sent': 'Abbiamo inviato un’email a {email}. Apra il suo link per continuare.',
  'register.sent.hint':
    'Nessuna email dopo un minuto? Controlli la cartella dello spam e l’indirizzo.',
  'register.again': 'Usa un altro indirizzo',
  'register.confirm.title': 'Completi il Suo account',
  'register.confirm.lead': 'Il Suo indirizzo è {email}. Scelga una password per {tenant}.',
  'register.confirm.known':
    'Ha già un account con {email}. Si unisca a {tenant}, poi acceda come di consueto.',
  'register.confirm.submit': 'Crea account',
  'register.confirm.join': 'Unisciti a {tenant}',
  'register.off.title': 'Le registrazioni sono chiuse',
  'register.off': '{tenant} non offre la registrazione qui. Chieda un invito a un amministratore.',
  'register.gone.title': 'Link non più valido',
  'register.gone':
    'Questo link è stato usato o è scaduto. Si registri di nuovo per riceverne uno nuovo.',
  'register.start': 'Registrati di nuovo',

  'dev_mail.title': 'Email di sviluppo',
  'dev_mail.lead':
    'Le ultime email inviate da questo servizio, tenute in memoria. Questa pagina non esiste in produzione.',
  'dev_mail.none': 'Ancora nessuna email. Si registri o richieda un codice, poi ricarichi.',
  'dev_mail.hint':
    'Un ambiente di prova scrive solo a indirizzi come nome@example.com, ai domini verificati e ai suoi proprietari.',
  'dev_mail.reload': 'Ricarica',
  'dev_mail.message.title': 'Email',
  'dev_mail.subject': 'Oggetto',
  'dev_mail.to': 'A',
  'dev_mail.sent': 'Inviata',
  'dev_mail.open': 'Apri il link',
  'dev_mail.text': 'Come testo',
  'dev_mail.html': 'Come HTML',
  'dev_mail.back': 'Tutte le email',
}
