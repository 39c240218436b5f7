/** French. No-break spaces precede colons, semicolons, question and exclamation marks. */
import { account } from './fr/account.js'
import type { Catalogue } from './en.js'

export const fr: Catalogue = {
  ...account,

  'common.error': 'Un problème est survenu',
  'common.error.title': 'Erreur : {title}',
  'common.continue': 'Continuer',
  'common.support': 'Besoin d’aide ? {contact}',

  'home.title': 'svc',
  'home.lead':
    'Ceci est un fournisseur d’identité : les personnes et les agents logiciels s’y connectent, et les applications y vérifient leur identité.',
  'home.account': 'Votre compte',
  'home.docs': 'Documentation de l’API',
  'home.programs': 'Pour les programmes',
  'home.issuer': 'Émetteur (issuer)',
  'home.discovery': 'Découverte OpenID Connect',
  'home.bootstrap': 'Comment un agent obtient un espace de travail',
  'home.capabilities': 'Ce que propose ce déploiement',
  'error.title': 'L’opération n’a pas abouti',
  'error.status': 'Erreur {status}',
  'error.request': 'Si vous demandez de l’aide, indiquez ce numéro :',
  'error.400': 'La demande n’a pas pu être comprise. Revenez en arrière et réessayez.',
  'error.403':
    'Cette page n’était plus à jour, ou vous n’avez pas l’autorisation requise. Ouvrez-la de nouveau et recommencez.',
  'error.cookies':
    'Votre navigateur n’a envoyé aucun cookie de ce site avec le formulaire, qui n’a donc pas été accepté. Ouvrez la page de nouveau. Si ce message réapparaît, autorisez les cookies pour ce site.',
  'error.404': 'Il n’y a aucune page à cette adresse. Vérifiez que l’adresse est complète.',
  'error.405':
    'Cette adresse ne peut pas être ouverte directement : c’est une étape d’une autre page. Recommencez depuis votre point de départ.',
  'error.410': 'Cette adresse n’est plus valable.',
  'error.429': 'Trop de tentatives ont été effectuées. Patientez un peu, puis réessayez.',
  'error.500': 'Une erreur s’est produite de notre côté. Réessayez dans un instant.',
  'error.503': 'Le service est très sollicité. Réessayez dans un instant.',
  'error.flow':
    'Cette connexion a expiré ou n’existe pas. Revenez à votre point de départ et recommencez.',
  'error.again': 'Se connecter',

  'login.lead.application': 'Vous vous connectez à {tenant} pour continuer vers {name}.',
  'login.lead.agent':
    'Vous vous connectez à {tenant} pour répondre à une demande de l’agent {name}.',
  'login.lead.account': 'Vous vous connectez à {tenant} pour consulter votre compte.',
  'login.lead.sensitive':
    'Vous vous connectez à {tenant} pour modifier la protection de votre compte.',
  'login.again.application':
    'Confirmez qu’il s’agit bien de vous : connectez-vous de nouveau pour continuer vers {name}.',
  'login.again.agent':
    'Confirmez qu’il s’agit bien de vous : connectez-vous de nouveau pour répondre à une demande de l’agent {name}.',
  'login.again.account':
    'Confirmez qu’il s’agit bien de vous : connectez-vous de nouveau pour consulter votre compte.',
  'login.again.sensitive':
    'Confirmez qu’il s’agit bien de vous : connectez-vous de nouveau pour modifier la protection de votre compte.',

  'login.title': 'Se connecter',
  'login.email': 'Adresse e-mail',
  'login.password': 'Mot de passe',
  'login.submit': 'Se connecter',
  'login.wrong': 'L’adresse e-mail et le mot de passe ne correspondent pas.',
  'login.locked': 'Trop de tentatives. Patientez {wait}, puis réessayez.',

  'login.mail.code': 'Recevoir un code par e-mail',
  'login.mail.link': 'Recevoir un lien par e-mail',
  'login.mail.both': 'Recevoir un code et un lien par e-mail',
  'login.forgot': 'Mot de passe oublié ?',
  'login.email.invalid': 'Cette adresse e-mail n’est pas valide.',
  'captcha.wanted':
    'Confirmez que vous êtes un être humain, puis envoyez de nouveau le formulaire.',
  'captcha.working': 'Vérification de votre navigateur en cours. Cela prend quelques secondes.',
  'captcha.done': 'Votre navigateur a été vérifié.',
  'captcha.script':
    'Cette vérification nécessite JavaScript. Activez-le pour cette page ou réessayez plus tard.',
  'error.captcha':
    'Il est impossible pour le moment de vérifier que vous êtes un être humain. Réessayez dans quelques minutes.',
  'mail.title': 'Consultez votre messagerie',
  'mail.lead':
    'Si cette adresse correspond à un compte, un e-mail est en route. Cela peut prendre une minute. Consultez aussi le dossier des courriers indésirables.',
  'mail.link': 'Ouvrez le lien de l’e-mail dans ce navigateur.',
  'mail.code': 'Code reçu par e-mail',
  'mail.code.hint':
    'Huit lettres. Les traits d’union, les espaces et les majuscules sont sans importance.',
  'mail.submit': 'Se connecter',
  'mail.wrong': 'Ce code n’est pas valide ou a expiré. Vérifiez-le ou demandez un nouvel e-mail.',
  'mail.other': 'Retour à la connexion',
  'link.title': 'Se connecter',
  'link.lead': 'Confirmez que vous souhaitez vous connecter à {tenant} dans ce navigateur.',
  'link.submit': 'Se connecter',
  'link.browser.title': 'Autre navigateur',
  'link.browser':
    'Ce lien ne fonctionne que dans le navigateur où il a été demandé. Ouvrez-le dans celui-ci ou demandez ici un nouvel e-mail.',
  'link.gone.title': 'Lien expiré',
  'link.gone': 'Ce lien a déjà été utilisé ou a expiré. Demandez-en un nouveau.',
  'forgot.title': 'Mot de passe oublié ?',
  'forgot.lead':
    'Saisissez votre adresse e-mail. Si elle correspond à un compte, vous recevrez un lien pour choisir un nouveau mot de passe.',
  'forgot.submit': 'Envoyer le lien',
  'password.title': 'Choisir un nouveau mot de passe',
  'password.lead':
    'Ce sera le mot de passe de {email}. Vous serez déconnecté de tous vos appareils.',
  'password.new': 'Nouveau mot de passe',
  'password.submit': 'Enregistrer le mot de passe',
  'password.done.title': 'Mot de passe enregistré',
  'password.done':
    'Votre nouveau mot de passe est enregistré. Vous avez été déconnecté de tous vos appareils. Connectez-vous avec le nouveau mot de passe.',
  'password.common': 'Ce mot de passe est l’un des plus courants. Choisissez-en un autre.',
  'password.breached': 'Ce mot de passe figure dans des fuites de données. Choisissez-en un autre.',
  'password.change.title': 'Modifier votre mot de passe',
  'password.change.lead': 'Vous serez déconnecté de tous vos autres appareils.',
  'password.current': 'Mot de passe actuel',
  'password.current.wrong': 'Ce n’est pas votre mot de passe actuel.',
  'invitation.title': 'Vous êtes invité',
  'invitation.lead': 'Vous êtes invité à rejoindre {tenant} avec l’adresse {email}.',
  'invitation.until': 'L’invitation peut être acceptée une seule fois, jusqu’au {time}.',
  'invitation.known':
    'Vous avez déjà un compte. Acceptez l’invitation, puis connectez-vous avec ce compte.',
  'invitation.submit': 'Accepter l’invitation',
  'email.title': 'Confirmer votre adresse e-mail',
  'email.lead': 'Confirmez que {email} est votre adresse.',
  'email.submit': 'Confirmer l’adresse',
  'email.done.title': 'Adresse confirmée',
  'email.done': 'Merci. Votre adresse e-mail est confirmée.',
  'email.sent':
    'Un e-mail contenant un lien vous a été envoyé. Ouvrez ce lien dans ce navigateur pendant que vous êtes connecté.',
  'email.elsewhere.title': 'Connectez-vous d’abord',
  'email.elsewhere':
    'Ouvrez ce lien dans le navigateur où vous l’avez demandé, pendant que vous y êtes connecté. Si vous ne l’avez pas demandé, ignorez l’e-mail : rien n’a été modifié.',
  'login.upstreams': 'Autres moyens de se connecter',
  'login.upstream': 'Continuer avec {name}',

  'sso.away.title': 'Un instant',
  'sso.away': 'Vous allez être redirigé vers {name} pour vous y connecter.',
  'sso.confirm.title': 'Se connecter avec un autre fournisseur ?',
  'sso.confirm': 'Continuer vers {provider} pour vous connecter à {tenant} ?',
  'sso.confirm.leaves':
    'Vous êtes connecté à {tenant} en tant que {email}. Si vous continuez, cette session sera fermée.',
  'sso.confirm.hint': 'Si vous ne souhaitiez pas vous connecter, fermez cette page.',
  'sso.confirm.submit': 'Continuer vers {provider}',
  'sso.back.title': 'Un instant',
  'sso.back': 'La connexion a réussi. Vous allez revenir à votre point de départ.',
  'sso.unknown_state':
    'Cette réponse du fournisseur a déjà été utilisée, a expiré ou concerne un autre navigateur. Recommencez la connexion.',
  'sso.unknown_provider': 'Ce fournisseur ne permet pas de se connecter ici.',
  'sso.unavailable':
    'Le fournisseur est indisponible pour le moment. Réessayez ou connectez-vous d’une autre manière.',
  'sso.invalid_answer':
    'Le fournisseur a envoyé une réponse non valide. Vous n’êtes pas connecté. Contactez votre administrateur.',
  'sso.denied': 'Le fournisseur ne vous a pas connecté.',
  'sso.unverified_email':
    'Le fournisseur ne confirme pas que cette adresse e-mail est la vôtre. Confirmez-la auprès de lui ou connectez-vous d’une autre manière.',
  'sso.link_first':
    'Un compte existe déjà avec votre adresse e-mail. Connectez-vous comme auparavant, puis associez ce fournisseur sur la page de votre compte.',
  'sso.not_member': 'Vous n’êtes pas encore membre. Demandez à un administrateur de vous inviter.',
  'sso.invited':
    'Vous avez été invité. Ouvrez d’abord le lien de l’e-mail d’invitation, puis connectez-vous de cette manière.',
  'sso.suspended': 'Votre accès est suspendu. Contactez un administrateur.',
  'sso.identity_taken': 'Ce moyen de connexion est déjà associé à un autre compte.',
  'sso.session_gone':
    'Vous avez été déconnecté. Connectez-vous de nouveau, puis associez le fournisseur.',
  'sso.not_fresh':
    'Une nouvelle connexion est requise, et le fournisseur ne l’a pas confirmée. Connectez-vous d’une autre manière.',
  'sso.last_way_in':
    'C’est le seul moyen de vous connecter à votre compte. Configurez-en un autre avant de le retirer.',

  'mfa.title': 'Validation en deux étapes',
  'mfa.lead': 'Saisissez les six chiffres affichés par votre application d’authentification.',
  'mfa.code': 'Code',
  'mfa.hint':
    'Vous n’avez pas votre téléphone ? Saisissez plutôt l’un de vos codes de récupération.',
  'mfa.submit': 'Confirmer',
  'mfa.wrong': 'Ce code n’est pas valide. Chaque code ne sert qu’une fois ; attendez le suivant.',
  'mfa.other': 'Se connecter avec un autre compte',

  'common.or': 'ou',
  'mfa.recovery':
    'Vous n’avez pas de clé d’accès à portée de main ? Saisissez l’un de vos codes de récupération.',
  'mfa.recovery.hint': 'Chaque code ne sert qu’une fois.',
  'mfa.passkey.wrong':
    'Cette clé d’accès n’a pas pu être utilisée. Réessayez ou choisissez un autre moyen.',

  'logout.title': 'Vous êtes déconnecté',
  'logout.lead': 'Votre session dans ce navigateur est terminée.',

  'invite.title': 'Devenir opérateur',
  'invite.lead': 'Vous êtes invité à administrer {organization}. Créez votre compte pour accepter.',
  'invite.until': 'L’invitation peut être utilisée une seule fois, jusqu’au {time}.',
  'invite.name': 'Votre nom',
  'invite.email': 'Adresse e-mail',
  'invite.password': 'Choisissez un mot de passe',
  'invite.password.hint': 'Au moins 12 caractères. Une phrase se retient mieux qu’une énigme.',
  'invite.submit': 'Créer un compte',
  'invite.weak':
    'Le mot de passe doit comporter de 12 à 256 caractères et être différent de votre adresse e-mail.',
  'invite.sent':
    'Un e-mail a été envoyé à {email}. Ouvrez son lien dans ce navigateur pour accepter l’invitation à administrer {organization}.',
  'invite.letter.lead': 'Vous êtes invité à administrer {organization} en tant que {email}.',
  'invite.email.invalid': 'Cette adresse e-mail n’est pas valide.',
  'invite.unknown.title': 'Invitation introuvable',
  'invite.unknown': 'Il n’y a aucune invitation à cette adresse. Vérifiez qu’elle est complète.',
  'invite.spent.title': 'Invitation expirée',
  'invite.spent': 'Cette invitation a été utilisée ou a expiré. Demandez-en une nouvelle.',

  'consent.title': 'Autoriser l’accès ?',
  'consent.lead': '{name} ({host}) demande l’accès à votre compte.',
  'consent.lead.documented':
    '{host} demande l’accès à votre compte. Cette application n’est pas enregistrée ici.',
  'consent.claimed': 'Elle se présente sous le nom {name}.',
  'consent.redirect': 'Vous reviendrez ensuite sur {host}.',
  'consent.first_seen.documented': 'Elle a été vue ici pour la première fois le {date}.',
  'consent.resource': 'La demande concerne l’accès à {name} ({host}).',
  'consent.loopback':
    'L’application s’exécute sur votre propre ordinateur. Ne continuez que si vous l’avez lancée vous-même.',
  'consent.first_seen': 'Elle s’est enregistrée elle-même le {date}. Son nom n’est pas vérifié.',
  'consent.new': 'Nouveau',
  'consent.kind.write': 'effectue des modifications',
  'consent.kind.money': 'peut dépenser de l’argent',
  'consent.as': 'Vous êtes connecté en tant que {email}.',
  'consent.scopes': 'Elle pourra',
  'consent.details': 'Détails',
  'consent.allow': 'Autoriser',
  'consent.deny': 'Refuser',
  'consent.later': 'Vous pouvez révoquer cet accès à tout moment sur la page de votre compte.',
  'delegation.title': 'Autoriser cet agent à agir pour vous ?',
  'delegation.lead': 'L’agent logiciel {name} demande à agir en votre nom.',
  'delegation.compare': 'Il doit vous avoir montré ce code :',
  'delegation.about': 'À propos de cette demande',
  'delegation.agent': 'Agent',
  'delegation.key': 'Clé',
  'delegation.asked': 'Demandé',
  'delegation.from': '{time}, depuis l’adresse {address}',
  'delegation.audience': 'À utiliser auprès de',
  'delegation.audience.own': 'ce service',
  'delegation.scopes': 'Il pourra',
  'delegation.lasts':
    'La délégation prend fin {time} après que l’agent l’a récupérée, ou dès que vous y mettez fin.',
  'delegation.since': 'Enregistré',
  'delegation.last': 'Votre dernière autorisation',
  'delegation.last.never': 'Jamais, d’après nos données',
  'delegation.refused': 'Il demande aussi des autorisations que vous n’avez pas',
  'delegation.nothing':
    'Vous n’avez aucune des autorisations demandées : vous ne pouvez donc pas accepter.',
  'delegation.unknown':
    'N’autorisez cet agent que si vous êtes à l’origine de cette demande. Si quelqu’un vous a envoyé un lien ou un code, cette personne pourrait agir à votre place.',
  'delegation.approve': 'Autoriser l’agent',
  'delegation.deny': 'Refuser',
  'delegation.approved.title': 'L’agent peut agir pour vous',
  'delegation.approved':
    'Vous avez autorisé {name}. Vous pouvez fermer cette fenêtre et retourner auprès de l’agent.',
  'delegation.denied.title': 'Accès refusé',
  'delegation.denied':
    'Vous n’avez pas autorisé {name} à agir pour vous. Vous pouvez fermer cette fenêtre.',
  'authorize.refused':
    'L’application vous a envoyé ici avec une demande non valide. Retournez-y et réessayez.',
  'authorize.back': 'Retour à {name}',
  'authorize.reason': 'Détails pour l’assistance :',
  'device.title': 'Connecter un appareil',
  'device.lead': 'Saisissez le code affiché par l’appareil ou le programme.',
  'device.code': 'Code',
  'device.code.hint':
    'Huit lettres, par exemple {example}. Majuscules et minuscules sont équivalentes.',
  'device.continue': 'Continuer',
  'device.unknown':
    'Aucun appareil n’attend avec ce code. Il a peut-être expiré : vérifiez l’appareil.',
  'device.spent': 'Trop de codes erronés. Patientez {wait}, puis réessayez.',
  'device.confirm.title': 'Autoriser cet appareil ?',
  'device.confirm.lead': '{name}, sur un autre appareil, demande l’accès à votre compte.',
  'device.confirm.code': 'L’appareil doit afficher exactement ce code :',
  'device.confirm.asked': 'Demandé le {time}, depuis l’adresse {address}.',
  'device.confirm.warning':
    'N’autorisez l’accès que si vous êtes à l’origine de cette demande et que l’appareil est devant vous. Si quelqu’un vous a envoyé le code ou un lien, refusez.',
  'device.allow': 'Autoriser',
  'device.deny': 'Refuser',
  'device.nothing':
    'Vous n’avez aucune des autorisations demandées : il n’y a donc rien à autoriser.',
  'device.approved.title': 'Appareil connecté',
  'device.approved':
    '{name} continue automatiquement dans un instant. Vous pouvez fermer cette fenêtre.',
  'device.denied.title': 'Appareil non connecté',
  'device.denied': '{name} n’obtient aucun accès à votre compte. Vous pouvez fermer cette fenêtre.',

  'inbox.title': 'Demandes en attente',
  'inbox.none': 'Aucune application ne vous demande quoi que ce soit pour le moment.',
  'inbox.none.hint':
    'Les demandes des applications apparaissent ici. Actualisez cette page si vous en attendez une.',
  'inbox.warning':
    'N’autorisez que ce que vous avez lancé vous-même. Si quelqu’un vous a demandé d’ouvrir cette page, n’autorisez rien.',
  'inbox.lead': '{name} demande à vous connecter',
  'inbox.binding': 'L’endroit où vous avez commencé doit afficher exactement ceci :',
  'inbox.times': 'Demandé le {asked} ; expire le {until}.',
  'inbox.account': 'Votre compte',
  'inbox.back': 'Retour aux demandes',
  'inbox.approved.title': 'Autorisé',
  'inbox.approved':
    '{name} continue automatiquement dans un instant. Vous pouvez fermer cette fenêtre.',
  'inbox.denied.title': 'Refusé',
  'inbox.denied': '{name} n’obtient aucun accès à votre compte. Vous pouvez fermer cette fenêtre.',

  'signedout.title': 'Déconnexion effectuée',
  'signedout.lead': 'Vous êtes déconnecté. Vous pouvez fermer cette fenêtre.',

  'pay.title': 'Payer',
  'pay.link.begin': 'Continuer vers le paiement',
  'pay.what': 'Votre achat',
  'pay.total': 'Total',
  'pay.every.day': 'chaque jour',
  'pay.every.week': 'chaque semaine',
  'pay.every.month': 'chaque mois',
  'pay.every.year': 'chaque année',
  'pay.every.more': 'à intervalles de {stretch}',
  'pay.renews':
    'Ce paiement se renouvelle automatiquement jusqu’à ce que vous le résiliiez. Nous vous écrirons à {email}.',
  'pay.email': 'Adresse e-mail pour le reçu (facultatif)',
  'pay.email.wrong': 'Cette adresse e-mail n’est pas valide.',
  'pay.rail.wrong': 'Ce moyen de paiement n’est pas disponible ici.',
  'pay.full':
    'Cette boutique ne peut plus accepter de paiements pour le moment. Vous n’avez pas été débité.',
  'pay.sandbox':
    'Ceci est un bac à sable : aucun argent n’est transféré. Choisissez ce qui se passe.',
  'pay.sandbox.succeed': 'Payer {total}',
  'pay.sandbox.decline': 'Faire refuser le paiement',
  'pay.sandbox.dispute': 'Payer, puis contester',
  'pay.with': 'Payer avec {rail}',
  'pay.card': 'Payer par carte',
  'pay.continue': 'Continuer vers la page de paiement',
  'pay.continue.text':
    'Le paiement n’est pas encore arrivé. Si vous avez payé, vérifiez de nouveau dans un instant. Sinon, continuez.',
  'pay.none': 'Aucun moyen de paiement n’est disponible pour le moment.',
  'pay.invoices':
    'Pour chaque renouvellement, la boutique envoie un lien à {email}. Vous n’êtes jamais débité sans intervention de votre part.',
  'pay.x402.title': 'Payer depuis un portefeuille',
  'pay.x402.exactly':
    'Envoyez exactement ce montant sur ce réseau : la boutique reconnaît votre paiement à son montant.',
  'pay.x402.amount': 'Montant',
  'pay.x402.network': 'Réseau',
  'pay.x402.to': 'À',
  'pay.x402.asset': 'Jeton',
  'pay.x402.wallet': 'Ouvrir un portefeuille',
  'pay.x402.picture': 'Code QR du paiement, pour un portefeuille',
  'pay.x402.sent': 'Je l’ai envoyé : vérifier de nouveau',
  'pay.x402.agents': 'Les agents paient par x402 à l’adresse',
  'pay.processing.title': 'Paiement en cours',
  'pay.processing':
    'Le paiement est en cours de traitement. Vous n’avez pas besoin de payer de nouveau.',
  'pay.look': 'Vérifier de nouveau',
  'pay.succeeded.title': 'Payé',
  'pay.succeeded': 'Merci. Le paiement a réussi.',
  'pay.failed.title': 'Paiement non effectué',
  'pay.failed': 'Le paiement a été refusé. Vous n’avez pas été débité.',
  'pay.refunded.title': 'Remboursé',
  'pay.refunded': 'Ce paiement a été remboursé, en totalité ou en partie.',
  'pay.charge': 'Numéro de paiement :',
  'pay.back': 'Continuer',
  'pay.cancel': 'Revenir sans payer',
  'pay.ended': 'Cette page de paiement a expiré. Recommencez depuis votre point de départ.',

  'offer.title': 'Récupérer votre attestation',
  'offer.lead':
    '{name} vous propose cette attestation. Scannez le code avec votre portefeuille, ou ouvrez le portefeuille sur cet appareil.',
  'offer.of.TenantMembership': 'Appartenance',
  'offer.of.VerifiedEmail': 'Adresse e-mail vérifiée',
  'offer.of.AgentDelegation': 'Délégation à un agent logiciel',
  'offer.picture': 'Code QR de l’offre d’attestation, pour un portefeuille',
  'offer.open': 'Ouvrir le portefeuille',
  'offer.code':
    'Le portefeuille demande un code. Vous recevez ce code par un autre moyen, pas sur cette page.',
  'offer.short': 'L’offre ne peut être utilisée qu’une fois et expire bientôt.',
  'offer.ended': 'Cette offre a expiré ou a été utilisée. Demandez-en une nouvelle.',

  'scope.TenantMembership': 'Obtenir une attestation de votre appartenance et de vos rôles',
  'scope.VerifiedEmail': 'Obtenir une attestation de votre adresse e-mail',
  'scope.AgentDelegation': 'Obtenir une attestation de ce qu’un agent peut faire pour vous',
  'scope.openid': 'Savoir qui vous êtes',
  'scope.profile': 'Voir votre nom, votre photo, votre langue et votre fuseau horaire',
  'scope.email': 'Voir votre adresse e-mail',
  'scope.phone': 'Voir votre numéro de téléphone',
  'scope.offline_access': 'Rester connecté en votre absence',
  'scope.org:read': 'Voir votre organisation',
  'scope.org:manage': 'Modifier votre organisation et ses membres',
  'scope.org:create': 'Créer des organisations',
  'scope.applications:read': 'Voir les applications de ce locataire',
  'scope.applications:manage': 'Gérer les applications de ce locataire',
  'scope.users:read': 'Voir les utilisateurs de ce locataire',
  'scope.users:manage': 'Gérer les utilisateurs de ce locataire',
  'scope.webhooks:read': 'Voir les webhooks',
  'scope.webhooks:manage': 'Gérer les webhooks',
  'scope.vault:list': 'Voir quels identifiants contient le coffre',
  'scope.vault:read': 'Utiliser des identifiants du coffre',
  'scope.vault:sign': 'Signer des certificats SSH avec les autorités du coffre',
  'scope.vault:manage': 'Gérer les identifiants du coffre',
  'scope.agents:read': 'Voir les agents logiciels',
  'scope.agents:manage': 'Gérer les agents logiciels',
  'scope.delegations:manage': 'Révoquer ce que les agents peuvent faire pour vous',
  'scope.tenant:manage': 'Gérer ce locataire',
  'scope.commerce:read': 'Voir les paiements et les prix',
  'scope.commerce:manage': 'Gérer les paiements et les prix',
  'scope.audit:read': 'Lire le journal d’audit',
  'scope.tokens:introspect': 'Vérifier des jetons',
  'scope.credentials:issue': 'Émettre des attestations vérifiables',
  'scope.metrics:read': 'Lire les métriques du service',
  'scope.signing_keys:manage': 'Renouveler les clés de signature du service',
  'scope.deployment:manage':
    'Suspendre et réactiver des organisations, des locataires et des comptes',
}
