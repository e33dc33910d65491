//! Block sets: which arms and cells, how often, in which order.

use assize_codes as codes;
use assize_plan::OrderTable;
use assize_study::ast::{Arm, ArmOrder, BlockSet, CellOrder, Named};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Name;
use assize_study::source::Span;

use crate::cells::{Cells, Member};
use crate::design::{arm_orders, balance, cell_orders, turns};
use crate::eval::Evaluator;
use crate::merge::Entries;
use crate::seed::Seed;

/// Blocks of one set at most.
const MAX_BLOCKS: u32 = 10_000;
/// Arms of one counterbalanced set at most.
const MAX_COUNTERBALANCED: usize = 16;
/// Cells of the units of one set at most.
const MAX_RUNS: usize = 1_000_000;
/// The name of the set of a study that declares none.
const EVERYTHING: &str = "everything";

/// A block set with its orders.
pub(crate) struct Set {
    pub name: String,
    pub span: Span,
    pub blocks: u32,
    /// Names of arms.
    pub arms: Vec<String>,
    pub cells: Vec<Member>,
    pub arm_orders: Vec<Vec<usize>>,
    pub cell_orders: Vec<Vec<usize>>,
    pub table: OrderTable,
    pub excluded: bool,
    pub restart: bool,
}

impl Set {
    pub fn runs(&self, cell: &str, arm: &str) -> bool {
        self.cells.iter().any(|member| member.name == cell)
            && self.arms.iter().any(|name| name == arm)
    }
}

/// The study's sets: those that count in name order, then the excluded ones.
pub(crate) fn sets(
    eval: &Evaluator<'_>,
    entries: &Entries<BlockSet>,
    declared: bool,
    arms: &Entries<Arm>,
    cells: &Cells,
    seed: &Seed<'_>,
    study: &Name,
) -> Vec<Set> {
    let everything = Named {
        name: Name::new(EVERYTHING, study.span),
        item: BlockSet::default(),
    };
    let list: Vec<&Named<BlockSet>> = if declared {
        entries.list.iter().collect()
    } else {
        vec![&everything]
    };
    let mut sets: Vec<Set> = list
        .into_iter()
        .filter_map(|entry| set(eval, entry, arms, cells, seed))
        .collect();
    sets.sort_by_key(|set| set.excluded);
    sets
}

fn set(
    eval: &Evaluator<'_>,
    entry: &Named<BlockSet>,
    arms: &Entries<Arm>,
    cells: &Cells,
    seed: &Seed<'_>,
) -> Option<Set> {
    let (name, item) = (&entry.name, &entry.item);
    let blocks = match &item.repeat {
        Some(expr) => eval.count(expr, &[], "`repeat`", 1, MAX_BLOCKS),
        None => Some(1),
    };
    let arm_names = arm_names(eval, item, arms);
    let members = members(eval, item, cells);
    let (blocks, arm_names, members) = (blocks?, arm_names?, members?);
    if arm_names.is_empty() || members.is_empty() {
        // Where the study's own entries have errors there is nothing to add.
        return None;
    }
    if (blocks as usize)
        .saturating_mul(arm_names.len())
        .saturating_mul(members.len())
        > MAX_RUNS
    {
        eval.context.report(Diagnostic::new(
            codes::E0406,
            name.span,
            format!("a block set runs at most {MAX_RUNS} cells"),
        ));
        return None;
    }
    let arm_order = item
        .arm_order
        .as_ref()
        .map_or(ArmOrder::Fixed, |order| order.value);
    let cell_order = item
        .cell_order
        .as_ref()
        .map_or(CellOrder::Fixed, |order| order.value);
    if arm_order == ArmOrder::Counterbalanced && arm_names.len() > MAX_COUNTERBALANCED {
        eval.context.report(
            Diagnostic::new(
                codes::E0406,
                name.span,
                format!(
                    "`counterbalanced` takes at most {MAX_COUNTERBALANCED} arms, `{name}` has {}",
                    arm_names.len()
                ),
            )
            .help("compare fewer arms in one block set, or use `arm_order: rotating`"),
        );
        return None;
    }
    if let Some(order) = &item.arm_order
        && arm_names.len() > 1
        && matches!(order.value, ArmOrder::Counterbalanced | ArmOrder::Shuffled)
    {
        seed.need(
            eval.context,
            order.span,
            &format!("`{}`", order.value.word()),
        );
    }
    if let Some(order) = &item.cell_order
        && members.len() > 1
        && order.value == CellOrder::Shuffled
    {
        seed.need(
            eval.context,
            order.span,
            &format!("`{}`", order.value.word()),
        );
    }
    let turns = turns(cell_order, members.len(), blocks as usize);
    let arm_orders = arm_orders(arm_order, arm_names.len(), &turns, seed.block(0));
    let cell_orders = cell_orders(cell_order, members.len(), blocks as usize, seed.block(0));
    let balance = balance(arm_names.len(), &arm_orders, &turns);
    let named = |order: &[usize], names: &dyn Fn(usize) -> String| {
        order.iter().map(|place| names(*place)).collect()
    };
    let table = OrderTable {
        set: name.text.clone(),
        blocks,
        arm_order: arm_order.word().to_owned(),
        cell_order: cell_order.word().to_owned(),
        arms: arm_orders
            .iter()
            .map(|order| named(order, &|place| arm_names[place].clone()))
            .collect(),
        cells: cell_orders
            .iter()
            .map(|order| named(order, &|place| members[place].name.clone()))
            .collect(),
        position_spread: balance.position_spread,
        position_in_cell_order_spread: balance.position_in_cell_order_spread,
        succession_spread: balance.succession_spread,
    };
    Some(Set {
        name: name.text.clone(),
        span: name.span,
        blocks,
        arms: arm_names,
        cells: members,
        arm_orders,
        cell_orders,
        table,
        excluded: item.excluded.as_ref().is_some_and(|flag| flag.value),
        restart: item.restart.as_ref().is_none_or(|flag| flag.value),
    })
}

fn arm_names(eval: &Evaluator<'_>, item: &BlockSet, arms: &Entries<Arm>) -> Option<Vec<String>> {
    let Some(listed) = &item.arms else {
        return Some(arms.names().map(str::to_owned).collect());
    };
    let mut names: Vec<String> = Vec::new();
    let mut fine = true;
    for name in &listed.value {
        if arms.find(eval.context, name).is_none() {
            fine = false;
        } else if names.contains(&name.text) {
            twice(eval, name.span, &name.text);
            fine = false;
        } else {
            names.push(name.text.clone());
        }
    }
    fine.then_some(names)
}

fn members(eval: &Evaluator<'_>, item: &BlockSet, cells: &Cells) -> Option<Vec<Member>> {
    let Some(listed) = &item.cells else {
        let all = cells
            .groups
            .iter()
            .flat_map(|group| group.members.iter().cloned());
        return Some(all.collect());
    };
    let mut members: Vec<Member> = Vec::new();
    let mut fine = true;
    for reference in &listed.value {
        let Some(several) = cells.several(eval, reference) else {
            fine = false;
            continue;
        };
        for member in several {
            if members.iter().any(|known| known.name == member.name) {
                twice(eval, reference.span, &member.name);
                fine = false;
            } else {
                members.push(member.clone());
            }
        }
    }
    fine.then_some(members)
}

fn twice(eval: &Evaluator<'_>, span: Span, name: &str) {
    eval.context.report(
        Diagnostic::new(codes::E0406, span, format!("`{name}` is listed twice"))
            .help("a block runs each arm and each cell once; `repeat` makes more blocks"),
    );
}
