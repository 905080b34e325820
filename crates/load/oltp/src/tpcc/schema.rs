//! The tables of TPC-C (clause 1.3), with amounts of fixed point, so that the conditions are exact.
//! There are no foreign keys, as in the tools that are compared with.

use plimsoll_model::database::Engine;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// Its columns and their types, as CREATE TABLE has them; `{time}` is a date with a time.
    columns: &'static str,
    /// The columns of its primary key; none for history, which has no key.
    key: Option<&'static str>,
    /// Its other index: name and columns.
    index: Option<(&'static str, &'static str)>,
}

impl Table {
    /// The statement that creates it. MariaDB and MySQL keep rows in the order of the primary key, which
    /// must therefore exist before them. PostgreSQL builds an index of many rows faster than it maintains
    /// one.
    pub(super) fn create(&self, engine: Engine) -> String {
        let Table { name, columns, .. } = self;
        match (engine, self.key) {
            (Engine::Postgresql, _) => format!("CREATE TABLE {name} ({})", columns.replace("{time}", "TIMESTAMP")),
            (Engine::Mariadb | Engine::Mysql, key) => {
                let key = key.map_or(String::new(), |key| format!(", PRIMARY KEY ({key})"));
                let columns = columns.replace("{time}", "DATETIME");
                format!("CREATE TABLE {name} ({columns}{key}) ENGINE=InnoDB CHARACTER SET latin1 COLLATE latin1_bin")
            }
        }
    }

    /// The statements to run after its rows are loaded.
    pub(super) fn finish(&self, engine: Engine) -> Vec<String> {
        let name = self.name;
        let key = self.key.filter(|_| engine == Engine::Postgresql);
        let key = key.map(|key| format!("ALTER TABLE {name} ADD PRIMARY KEY ({key})"));
        let index = self.index.map(|(index, columns)| format!("CREATE INDEX {index} ON {name} ({columns})"));
        let analyse = match engine {
            Engine::Postgresql => format!("VACUUM (ANALYZE) {name}"),
            Engine::Mariadb | Engine::Mysql => format!("ANALYZE TABLE {name}"),
        };
        key.into_iter().chain(index).chain([analyse]).collect()
    }

    /// The names of its columns.
    pub(super) fn column_names(&self) -> Vec<&'static str> {
        // A comma within a type, as in DECIMAL(12, 2), is followed by a digit.
        let definitions = self.columns.split(", ").filter(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
        definitions.filter_map(|definition| definition.split_whitespace().next()).collect()
    }
}

pub(super) const WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: "w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, \
        w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, \
        w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4, 4) NOT NULL, w_ytd DECIMAL(12, 2) NOT NULL",
    key: Some("w_id"),
    index: None,
};

pub(super) const DISTRICT: Table = Table {
    name: "district",
    columns: "d_id SMALLINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, \
        d_street_1 VARCHAR(20) NOT NULL, d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, \
        d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, d_tax DECIMAL(4, 4) NOT NULL, \
        d_ytd DECIMAL(12, 2) NOT NULL, d_next_o_id INT NOT NULL",
    key: Some("d_w_id, d_id"),
    index: None,
};

pub(super) const CUSTOMER: Table = Table {
    name: "customer",
    columns: "c_id INT NOT NULL, c_d_id SMALLINT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL, \
        c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL, \
        c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, \
        c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL, c_since {time} NOT NULL, c_credit CHAR(2) NOT NULL, \
        c_credit_lim DECIMAL(12, 2) NOT NULL, c_discount DECIMAL(4, 4) NOT NULL, \
        c_balance DECIMAL(12, 2) NOT NULL, c_ytd_payment DECIMAL(12, 2) NOT NULL, c_payment_cnt INT NOT NULL, \
        c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL",
    key: Some("c_w_id, c_d_id, c_id"),
    index: Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
};

pub(super) const HISTORY: Table = Table {
    name: "history",
    columns: "h_c_id INT NOT NULL, h_c_d_id SMALLINT NOT NULL, h_c_w_id INT NOT NULL, h_d_id SMALLINT NOT NULL, \
        h_w_id INT NOT NULL, h_date {time} NOT NULL, h_amount DECIMAL(6, 2) NOT NULL, h_data VARCHAR(24) NOT NULL",
    key: None,
    index: None,
};

pub(super) const NEW_ORDER: Table = Table {
    name: "new_order",
    columns: "no_o_id INT NOT NULL, no_d_id SMALLINT NOT NULL, no_w_id INT NOT NULL",
    key: Some("no_w_id, no_d_id, no_o_id"),
    index: None,
};

pub(super) const ORDERS: Table = Table {
    name: "orders",
    columns: "o_id INT NOT NULL, o_d_id SMALLINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, \
        o_entry_d {time} NOT NULL, o_carrier_id SMALLINT, o_ol_cnt SMALLINT NOT NULL, o_all_local SMALLINT NOT NULL",
    key: Some("o_w_id, o_d_id, o_id"),
    index: Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
};

pub(super) const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "ol_o_id INT NOT NULL, ol_d_id SMALLINT NOT NULL, ol_w_id INT NOT NULL, ol_number SMALLINT NOT NULL, \
        ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d {time}, ol_quantity SMALLINT NOT NULL, \
        ol_amount DECIMAL(6, 2) NOT NULL, ol_dist_info CHAR(24) NOT NULL",
    key: Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
    index: None,
};

pub(super) const ITEM: Table = Table {
    name: "item",
    columns: "i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5, 2) NOT NULL, \
        i_data VARCHAR(50) NOT NULL",
    key: Some("i_id"),
    index: None,
};

pub(super) const STOCK: Table = Table {
    name: "stock",
    columns: "s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL, s_dist_01 CHAR(24) NOT NULL, \
        s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, \
        s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, \
        s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL, s_dist_10 CHAR(24) NOT NULL, \
        s_ytd INT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL",
    key: Some("s_w_id, s_i_id"),
    index: None,
};

/// All tables, those that take longest to load first.
pub(super) const TABLES: [&Table; 9] =
    [&ORDER_LINE, &STOCK, &CUSTOMER, &HISTORY, &ORDERS, &NEW_ORDER, &ITEM, &DISTRICT, &WAREHOUSE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_told_from_what_their_types_hold() {
        assert_eq!(ITEM.column_names(), ["i_id", "i_im_id", "i_name", "i_price", "i_data"]);
        assert_eq!(CUSTOMER.column_names().len(), 21);
        assert_eq!(STOCK.column_names().len(), 17);
    }

    #[test]
    fn a_primary_key_comes_before_the_rows_only_where_it_orders_them() {
        assert!(!ITEM.create(Engine::Postgresql).contains("PRIMARY KEY"));
        assert_eq!(ITEM.finish(Engine::Postgresql)[0], "ALTER TABLE item ADD PRIMARY KEY (i_id)");
        assert!(ITEM.create(Engine::Mariadb).contains("PRIMARY KEY (i_id)"));
        assert_eq!(ITEM.finish(Engine::Mariadb), ["ANALYZE TABLE item"]);
    }
}
